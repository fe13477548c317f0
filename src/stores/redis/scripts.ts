/**
 * The scripts, one for each operation. A script checks everything, and then does ONE write, which carries the expiry: one that fails half-way (out of
 * memory, killed) has written nothing, and no record is ever without an end (rule 38).
 *
 * A record is one string of words: `1 state generation attempts endsMs owner mark fingerprint steps outcome`, with bytes in base64 and `-` for none. So no
 * client can spoil it, whatever it makes of replies, and an operator can read it. Not a hash: HSET and PEXPIRE would be two writes.
 *
 * `mark` names the command that wrote last. A client that lost the answer may send the same command again (ioredis does), and is then told what was
 * told the first time. Numbers are printed as `%.0f`, because a plain Lua number keeps 14 digits of a generation that has 16.
 */
import { createHash } from 'node:crypto'

/** A script, and the name that the server knows it by once it has seen it. */
export interface Script {
  readonly text: string
  readonly sha: string
}

const clock = `
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%.0f', nowMs)
local micros = time[1] * 1000000 + time[2]
local value = redis.call('GET', KEYS[1])`

const save = `
local function save(state, generation, attempts, endsMs, owner, mark, fingerprint, steps, outcome, expiryMs)
  local words = string.format('1 %s %.0f %.0f %.0f %s %s %s %s ',
    state, generation, attempts, endsMs, owner, mark, fingerprint, steps)
  redis.call('SET', KEYS[1], words .. outcome, 'PX', expiryMs)
  return words .. outcome
end`

const read = `
if not value then return {'refused'} end
local state, generation, attempts, endsMs, owner, mark, fingerprint, steps, outcome =
  string.match(value, '^1 (%l+) (%d+) (%d+) (%d+) (%S+) (%S+) (%S+) (%S+) (%S*)$')
if not state then return {'corrupt'} end
endsMs = tonumber(endsMs)`

/** The same command once more: it was carried out, and its answer was lost. */
const carriedOut = `
if mark == ARGV[1] then return {'written', generation, attempts} end`

function script(purpose: string, ...parts: readonly string[]): Script {
  const text = `${purpose}\n${parts.join('\n')}`
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/** Writes of the owner and verdicts of operators, which all keep generation, attempts, owner and fingerprint. */
function settling(condition: string, state: string, outcome: string, expiryMs: string): string {
  return `
if not (${condition}) then return {'refused'} end
save('${state}', generation, attempts, nowMs + ARGV[3], owner, ARGV[1], fingerprint, steps, ${outcome}, ${expiryMs})
return {'written', generation, attempts}`
}

const owned = `state == 'running' and owner == ARGV[2]`
const named = 'generation == ARGV[2]'
/** Steps were begun or recorded: such a record does not end with its retention (rule 20). */
const byStepsMs = `steps == '-' and ARGV[4] or ARGV[5]`

export const scripts = {
  claim: script(
    `-- KEYS: the record. ARGV: owner, fingerprint, lease in ms, expiry in ms, the last instant at which anybody waits for it.
-- Answers {'written' | 'seen', the record, the clock in ms} or {'late', nothing, the clock in ms}.`,
    clock,
    save,
    `
if value then return {'seen', value, now} end
if nowMs > tonumber(ARGV[5]) then return {'late', '', now} end
value = save('running', micros, 1, nowMs + ARGV[3], ARGV[1], ARGV[1], ARGV[2], '-', '-', ARGV[4])
return {'written', value, now}`,
  ),

  find: script(
    `-- KEYS: the record. Answers {'seen', the record, the clock in ms} or {'refused'}: there is none.`,
    clock,
    `
if not value then return {'refused'} end
return {'seen', value, now}`,
  ),

  /** For lists: outcomes stay where they are. */
  head: script(
    `-- KEYS: the record. Answers {'seen', the record without its outcome, the clock in ms} or {'refused'}: there is none.`,
    clock,
    `
if not value then return {'refused'} end
local head = string.match(value, '^(.- )%S*$')
return {'seen', (head or '') .. '-', now}`,
  ),

  /** Keeps steps, but for a record that was done: past its retention the intent is a new one, and so is its count (rule 5). */
  takeOver: script(
    `-- KEYS: the record. ARGV: owner, fingerprint, lease in ms, expiry in ms, owner seen, generation seen, latest instant that retention may be judged by,
-- the last instant at which anybody waits for it.
-- Answers {'written', generation, attempts}, {'refused'} or {'corrupt'}.`,
    clock,
    save,
    read,
    carriedOut,
    `
local over = state == 'released' or (state == 'running' and endsMs <= nowMs)
  or (state == 'done' and endsMs <= math.min(nowMs, tonumber(ARGV[7])))
if not (over and owner == ARGV[5] and generation == ARGV[6] and nowMs <= tonumber(ARGV[8])) then return {'refused'} end
generation = string.format('%.0f', math.max(generation + 1, micros))
attempts = state == 'done' and '1' or string.format('%.0f', attempts + 1)
steps = state == 'done' and '-' or steps
save('running', generation, attempts, nowMs + ARGV[3], ARGV[1], ARGV[1], ARGV[2], steps, '-', ARGV[4])
return {'written', generation, attempts}`,
  ),

  /** Renewing twice is renewing: it needs no mark, and keeps that of the claim. */
  renew: script(
    `-- KEYS: the record. ARGV: owner, lease in ms, expiry in ms.
-- Answers {'written'}, {'refused'} or {'corrupt'}.`,
    clock,
    save,
    read,
    `
if not (state == 'running' and owner == ARGV[1]) then return {'refused'} end
save(state, generation, attempts, nowMs + ARGV[2], owner, mark, fingerprint, steps, outcome, ARGV[3])
return {'written'}`,
  ),

  /** An absent record was evicted, or is lost with a failover: that is told, and nothing is made up (rule 38). */
  complete: script(
    `-- KEYS: the record. ARGV: mark, owner, retention in ms, expiry in ms, outcome.
-- Answers {'written', …}, {'refused'} or {'corrupt'}.`,
    clock,
    save,
    read,
    carriedOut,
    settling(owned, 'done', 'ARGV[5]', 'ARGV[4]'),
  ),

  release: script(
    `-- KEYS: the record. ARGV: mark, owner, retention in ms, expiry in ms, expiry in ms where it has steps.
-- Answers {'written', …}, {'refused'} or {'corrupt'}.`,
    clock,
    save,
    read,
    carriedOut,
    settling(owned, 'released', `'-'`, byStepsMs),
  ),

  abandon: script(
    `-- KEYS: the record. ARGV: mark, generation seen, retention in ms, expiry in ms, owner seen.
-- Answers {'written', …}, {'refused'} or {'corrupt'}.`,
    clock,
    save,
    read,
    carriedOut,
    `
local unfinished = state == 'running' or (state == 'released' and steps ~= '-')`,
    settling(`unfinished and ${named} and owner == ARGV[5] and endsMs <= nowMs`, 'unknown', `'-'`, 'ARGV[4]'),
  ),

  resolveDone: script(
    `-- KEYS: the record. ARGV: mark, generation seen, retention in ms, expiry in ms, outcome.
-- Answers {'written', …}, {'refused'} or {'corrupt'}.`,
    clock,
    save,
    read,
    carriedOut,
    settling(`state == 'unknown' and ${named}`, 'done', 'ARGV[5]', 'ARGV[4]'),
  ),

  resolveReleased: script(
    `-- KEYS: the record. ARGV: mark, generation seen, retention in ms, expiry in ms, expiry in ms where it has steps.
-- Answers {'written', …}, {'refused'} or {'corrupt'}.`,
    clock,
    save,
    read,
    carriedOut,
    `
local stuck = state == 'unknown' or state == 'dead' or (state == 'running' and endsMs <= nowMs)`,
    settling(`stuck and ${named}`, 'released', `'-'`, byStepsMs),
  ),

  /** For the doctor: XX wants a key that is there, so it writes nothing, and is refused wherever a claim would be. */
  attempt: script(
    `-- KEYS: a name that no record has. Answers {'refused'}, or with the error that a write gets.`,
    `redis.call('SET', KEYS[1], '-', 'XX', 'PX', 1)`,
    `return {'refused'}`,
  ),

  /** Tells what a client puts in front of every key (`keyPrefix`): SCAN gives names with it. */
  spell: script(`-- KEYS: a name. Answers the name as the server has it.`, 'return KEYS[1]'),
} as const satisfies Record<string, Script>
