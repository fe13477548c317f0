import { movableClock, seededRandom } from 'retrysafe/testing'
import { describe, expect, test } from 'vitest'
import { longestTimerMs, sleep } from '../../dist/clock.js'

describe('a clock that the test moves', () => {
  test('stands still until it is moved, and moves both times alike', async () => {
    const clock = movableClock({ nowMs: 1000 })
    expect([clock.now(), clock.monotonic()]).toEqual([1000, 0])
    await clock.advance(250)
    expect([clock.now(), clock.monotonic()]).toEqual([1250, 250])
  })

  test('fires what falls due in order, each at its own time, and nothing beyond', async () => {
    const clock = movableClock({ nowMs: 0 })
    const fired: string[] = []
    for (const [name, delayMs] of [
      ['late', 30],
      ['early', 10],
      ['beyond', 51],
      ['also early', 10],
    ] as const) {
      clock.schedule(delayMs, () => fired.push(`${name} at ${clock.now()}`))
    }
    await clock.advance(50)
    expect(fired).toEqual(['early at 10', 'also early at 10', 'late at 30'])
    expect(clock.pending()).toBe(1)
  })

  test('fires a timer that another one sets on the way', async () => {
    const clock = movableClock({ nowMs: 0 })
    const times: number[] = []
    async function tick(): Promise<void> {
      for (;;) {
        await sleep(clock, 10)
        times.push(clock.now())
      }
    }
    void tick()
    await clock.advance(35)
    expect(times).toEqual([10, 20, 30])
  })

  test('does not fire a timer that was cancelled', async () => {
    const clock = movableClock()
    let fired = false
    const cancel = clock.schedule(10, () => {
      fired = true
    })
    cancel()
    await clock.advance(20)
    expect(fired).toBe(false)
  })

  test('takes a delay as setTimeout does: none below zero, none above 2^31 - 1 ms', async () => {
    const clock = movableClock()
    let fired = 0
    clock.schedule(-5, () => {
      fired += 1
    })
    clock.schedule(Number.POSITIVE_INFINITY, () => {
      fired += 1
    })
    await clock.advance(0)
    expect(fired).toBe(1)
    await clock.advance(longestTimerMs)
    expect(fired).toBe(2)
  })

  test('sets the wall time alone, as a time server does', async () => {
    const clock = movableClock({ nowMs: 1_000_000 })
    await clock.advance(10)
    clock.setWall(500)
    expect([clock.now(), clock.monotonic()]).toEqual([500, 10])
    await clock.advance(5)
    expect([clock.now(), clock.monotonic()]).toEqual([505, 15])
  })
})

describe('chance from a seed', () => {
  function sample(seed: number) {
    const random = seededRandom(seed)
    return [random.ownerToken(), Buffer.from(random.bytes(5)).toString('hex'), random.fraction()]
  }

  test('the same seed repeats it, another one does not', () => {
    expect(sample(7)).toEqual(sample(7))
    expect(sample(7)).not.toEqual(sample(8))
    expect(sample(0)).not.toEqual(sample(1))
  })

  test('tokens read as UUIDs and do not repeat; fractions fill [0, 1) evenly', () => {
    const random = seededRandom(1)
    const tokens = Array.from({ length: 2000 }, () => random.ownerToken())
    expect(new Set(tokens).size).toBe(tokens.length)
    for (const token of tokens)
      expect(token).toMatch(/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/)
    const tenths = Array<number>(10).fill(0)
    for (let draw = 0; draw < 10_000; draw += 1) {
      const tenth = Math.floor(random.fraction() * 10)
      tenths[tenth] = (tenths[tenth] ?? 0) + 1
    }
    for (const count of tenths) expect(count).toBeGreaterThan(850)
  })
})
