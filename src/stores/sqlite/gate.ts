/**
 * One queue for each database file in the process, and who holds which intent in it (rule 37).
 *
 * SQLite lets one connection write at a time and has nobody who would tell a waiter that its turn has come. Inside the process we do: the next in
 * line is woken when the one before has ended, and holds neither a connection nor a thread meanwhile (rule 6). Other processes are met
 * at BEGIN IMMEDIATE, which is tried again by timer.
 */
import { statSync } from 'node:fs'
import { fail } from '../../errors.js'
import { type Identity, recordName } from '../../store.js'

interface Gate {
  readonly waiting: (() => void)[]
  /** Somebody is in, or a rest is taken. */
  taken: boolean
  /** Since when turns have followed each other, on the monotonic clock. */
  began: number
  /** When the last turn ended. */
  left: number
}

/** By file; there are as many as the program has databases. */
const gates = new Map<string, Gate>()

/**
 * How long turns of one process may follow each other, and how long the rest is then, in ms. Another process only gets the file when it asks between two
 * turns: without the rest one of four was kept out for 12 s. The rest is longer than the longest pause between two of its tries.
 */
const longestRunMs = 100
const restMs = 4

/** By file and intent: tells whether its holder is still there. */
const holders = new Map<string, Set<() => boolean>>()

/** How many old holders are asked with each new one. */
const asked = 2

/** Names a file by device and inode, so that links and other spellings of its path do not make two queues of one. */
export function gateOf(file: string): string {
  const { dev, ino } = statSync(file, { bigint: true })
  return `${dev}:${ino}`
}

/** Waits for the turn, for `limitMs` at most; the function it gives ends it, and may be called twice. */
export function enter(name: string, limitMs: number): Promise<() => void> {
  const gate = gates.get(name) ?? { waiting: [], taken: false, began: 0, left: 0 }
  gates.set(name, gate)
  if (!gate.taken) {
    gate.taken = true
    if (performance.now() - gate.left >= restMs) gate.began = performance.now()
    if (!isTired(gate)) return Promise.resolve(leaving(gate))
    rest(gate)
  }
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      gate.waiting.splice(gate.waiting.indexOf(wake), 1)
      const detail = `other transactions of this process had the database file for ${limitMs} ms`
      reject(fail('STORE_UNAVAILABLE', { detail }))
    }, limitMs)
    function wake(): void {
      clearTimeout(timer)
      resolve(leaving(gate))
    }
    gate.waiting.push(wake)
  })
}

function leaving(gate: Gate): () => void {
  let left = false
  return () => {
    if (left) return
    left = true
    gate.left = performance.now()
    if (gate.waiting.length > 0 && isTired(gate)) rest(gate)
    else pass(gate)
  }
}

function isTired({ began }: Gate): boolean {
  return performance.now() - began > longestRunMs
}

function rest(gate: Gate): void {
  setTimeout(() => {
    gate.began = performance.now()
    pass(gate)
  }, restMs)
}

function pass(gate: Gate): void {
  const next = gate.waiting.shift()
  if (next === undefined) gate.taken = false
  else next()
}

/** Notes that a transaction of this process has, or will have, the intent; `stands` tells later whether that is still so. */
export function hold(gate: string, identity: Identity, stands: () => boolean = () => true): () => void {
  const name = nameOf(gate, identity)
  forgetSome()
  const all = holders.get(name) ?? new Set()
  holders.set(name, all.add(stands))
  return () => {
    all.delete(stands)
    if (all.size === 0 && holders.get(name) === all) holders.delete(name)
  }
}

/** Whether a transaction of this process has the intent: a claim of it is held, and is told so without waiting for the file. */
export function isHeld(gate: string, identity: Identity): boolean {
  return isHeldBy(nameOf(gate, identity))
}

/** Nobody tells when a caller's own transaction ends: with each new holder a few old ones are asked, so that no more stay than live. */
function forgetSome(): void {
  for (const name of firstNames()) {
    const all = holders.get(name)
    // Behind the others, so that the next ones get their turn.
    if (all === undefined || !isHeldBy(name)) continue
    holders.delete(name)
    holders.set(name, all)
  }
}

function firstNames(): readonly string[] {
  const names: string[] = []
  for (const name of holders.keys()) {
    if (names.push(name) === asked) break
  }
  return names
}

function isHeldBy(name: string): boolean {
  const all = holders.get(name)
  for (const stands of all ?? []) {
    if (stands()) return true
    all?.delete(stands)
  }
  holders.delete(name)
  return false
}

function nameOf(gate: string, identity: Identity): string {
  return `${gate}\n${recordName(identity)}`
}
