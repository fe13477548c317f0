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
}

/** Only those that somebody is in; a file that nobody uses leaves nothing behind. */
const gates = new Map<string, Gate>()

/** By file and intent: tells whether its holder is still there. */
const holders = new Map<string, Set<() => boolean>>()

/** Names a file by device and inode, so that links and other spellings of its path do not make two queues of one. */
export function gateOf(file: string): string {
  const { dev, ino } = statSync(file, { bigint: true })
  return `${dev}:${ino}`
}

/** Waits for the turn, for `limitMs` at most; the function it gives ends it, and may be called twice. */
export function enter(name: string, limitMs: number): Promise<() => void> {
  const gate = gates.get(name)
  if (gate === undefined) {
    gates.set(name, { waiting: [] })
    return Promise.resolve(leaving(name))
  }
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      gate.waiting.splice(gate.waiting.indexOf(wake), 1)
      const detail = `other transactions of this process had the database file for ${limitMs} ms`
      reject(fail('STORE_UNAVAILABLE', { detail }))
    }, limitMs)
    function wake(): void {
      clearTimeout(timer)
      resolve(leaving(name))
    }
    gate.waiting.push(wake)
  })
}

function leaving(name: string): () => void {
  let left = false
  return () => {
    if (left) return
    left = true
    const next = gates.get(name)?.waiting.shift()
    if (next === undefined) gates.delete(name)
    else next()
  }
}

/** Notes that a transaction of this process has, or will have, the intent; `stands` tells later whether that is still so. */
export function hold(gate: string, identity: Identity, stands: () => boolean = () => true): () => void {
  const name = nameOf(gate, identity)
  const all = holders.get(name) ?? new Set()
  holders.set(name, all.add(stands))
  return () => {
    all.delete(stands)
    if (all.size === 0 && holders.get(name) === all) holders.delete(name)
  }
}

/** Whether a transaction of this process has the intent: a claim of it is held, and is told so without waiting for the file. */
export function isHeld(gate: string, identity: Identity): boolean {
  const name = nameOf(gate, identity)
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
