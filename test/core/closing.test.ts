/** An instance keeps no process alive, and can be closed at any time and any number of times. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { movableClock } from 'retrysafe/testing'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** Runs a script whose instance nobody closes; resolves when the process has ended by itself. */
async function ended(script: string): Promise<{ code: number | null; printed: string }> {
  const module = `
    import { retrysafe } from 'retrysafe'
    import { memory } from 'retrysafe/memory'
    const safe = retrysafe({ store: memory(), cacheBytes: 1000 })
    const intent = { scope: 's', key: 'k' }
    ${script}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', module], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return { code, printed: printed.trim() }
}

test.each([
  ['a transaction', "console.log((await safe.transaction(intent, () => 'done')).value)"],
  ['lease-mode work', "console.log((await safe.run(intent, () => 'done')).value)"],
  ['the sweeper', "safe.start(); await safe.run(intent, () => 1); console.log('done')"],
  ['an import alone', "console.log('done')"],
])('a process ends by itself after %s, without close()', async (_, script) => {
  expect(await ended(script)).toEqual({ code: 0, printed: 'done' })
})

test('work that is left for ever does not keep a process alive either', async () => {
  // 13: Node's own word for a top-level await that nothing will settle.
  expect(await ended('await safe.run(intent, () => new Promise(() => {}))')).toEqual({
    code: 13,
    printed: '',
  })
})

test('close() may be called twice, at once and one after the other, and before start()', async () => {
  const clock = movableClock()
  const store = memory({ clock })
  const closed: string[] = []
  const closing = { ...store, close: async () => void closed.push('closed') }
  const safe = retrysafe({ store: closing, clock })
  safe.start()
  await Promise.all([safe.close(), safe.close()])
  await safe.close()
  expect(closed).not.toEqual([])
  expect(clock.pending()).toBe(0)
  await retrysafe({ store, clock }).close()
})

test.each(['transaction', 'run'] as const)(
  'close() during work lets it end and answer (%s)',
  async (mode) => {
    const clock = movableClock()
    const safe = retrysafe({ store: memory({ clock }), clock, leaseMs: 1000 })
    let finish: (value: string) => void = () => undefined
    const work = new Promise<string>((resolve) => {
      finish = resolve
    })
    const answer = safe[mode]({ scope: 's', key: 'k' }, () => work)
    await clock.advance(0)
    await safe.close()
    finish('done')
    expect(await answer).toEqual({ value: 'done', replayed: false })
    expect(clock.pending()).toBe(0)
  },
)
