/**
 * Every statement of the store, by name. Each names its database, so that nobody's `USE` decides where a record lives (rule 14).
 *
 * Instants are µs since 1970 as integers, counted from `UTC_TIMESTAMP`, so that neither `time_zone` nor its summer time is asked; it is the start of the
 * statement, not of the transaction, so that no record is born expired (rule 5). No double quotes, no `||` and no empty string: what they mean is a matter of
 * `sql_mode`.
 *
 * A claim in transaction mode is written as `unknown`, and becomes `done` with COMMIT. Nobody sees it in between; if somebody does, the work has committed
 * behind our back (DDL commits by itself), and then unknown is what it is (rule 36).
 */
import type { Identity } from '../../store.js'
import { bytes, integer, is, latestMicros, micros, text, token } from './literals.js'

const now = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))"

/** How long a claim that the work has committed behind our back is said to be kept; unknown records are never swept. */
const unknownMs = 30 * 24 * 3_600_000

/** The clock that retention is judged by: the store's, but never ahead of the caller's by more than the tolerance (rule 5). */
function retentionClock(callerNowMs: number): string {
  return `least(${now}, ${latestMicros(callerNowMs)})`
}

/** Read by `seenRecord` in rows.ts by place. */
function seenColumns(callerNowMs: number): string {
  return `state, hex(owner), generation, attempts, hex(fingerprint), hex(outcome), steps is not null,
    ends_at > case when state = 1 then ${now} else ${retentionClock(callerNowMs)} end,
    (ends_at - ${now}) div 1000, ${now} div 1000`
}

export interface Seen {
  readonly owner: string
  readonly generation: number
}

/** A new row of a claim. */
export interface NewClaim {
  readonly identity: Identity
  readonly owner: string
  readonly fingerprint: Uint8Array
  /** Lease mode: how long it lives. Undefined: inside a transaction. */
  readonly leaseMs: number | undefined
}

/** A record to be found by identity and owner, with a length for its lease. */
export interface Asked {
  readonly identity: Identity
  readonly owner: string
  readonly leaseMs: number
}

function standing({ leaseMs }: Pick<NewClaim, 'leaseMs'>): { state: number; end: string } {
  return { state: leaseMs === undefined ? 4 : 1, end: `${now} + ${micros(leaseMs ?? unknownMs)}` }
}

/** The savepoint of a claim; named by its token, so that no other transaction has one of this name. */
export function savepointName(kind: 'claim' | 'work', owner: string): string {
  return `retrysafe_${kind}_${token(owner).slice(2, -1)}`
}

/** In words, whatever default the session has: under REPEATABLE READ the snapshot may be older than what the insert meets. */
export const isolation = 'set transaction isolation level read committed, read write'
export const begin = 'start transaction read write'
export const commit = 'commit'
export const rollback = 'rollback'
export const server = "select version() like '%MariaDB%', @@max_allowed_packet, @@session.autocommit"
/** Each of the two has a name that the other does not know. */
function isolationVariable(mariadb: boolean): string {
  return mariadb ? 'tx_isolation' : 'transaction_isolation'
}
export function isolationOf(mariadb: boolean): string {
  return `select @@session.${isolationVariable(mariadb)}`
}
/**
 * Isolation as above, of the next transaction only: that is what the name without a scope means. And whoever goes silent is closed by the server, and rolled back with it
 * (rule 21); whole seconds is all it can count.
 *
 * No autocommit: a deadlock rolls the whole transaction back, and what the work sends behind it, or had sent beside it, would commit statement by statement, under a key
 * that is free again. Without it, it is a transaction of its own that nobody commits.
 */
export function settings(timeoutMs: number, mariadb: boolean): string {
  return `${sessionSettings(timeoutMs)}, @@${isolationVariable(mariadb)} = 'READ-COMMITTED'`
}
/** The part that may also come behind START TRANSACTION: switching autocommit off commits nothing. */
export function sessionSettings(timeoutMs: number): string {
  const seconds = Math.min(Math.max(1, Math.ceil(timeoutMs / 1000)), 2_000_000)
  return `${limitIdle}, session wait_timeout = ${seconds},
    @retrysafe_autocommit = @@session.autocommit, session autocommit = 0`
}
export const limitIdle = 'set @retrysafe_wait_timeout = @@session.wait_timeout'
export const unlimitIdle = 'set session wait_timeout = @retrysafe_wait_timeout'
/** Puts back all of `settings`, once its transaction has ended: autocommit would commit it. */
export const settingsAsBefore = `${unlimitIdle}, session autocommit = @retrysafe_autocommit`
/** MySQL has no setting for one statement only, and 1 s is the least it can wait. */
export const waitLittle =
  'set @retrysafe_lock_wait = @@session.innodb_lock_wait_timeout, session innodb_lock_wait_timeout = 1'
/** Whether this MariaDB has the setting. */
export const strictSnapshots = "show variables like 'innodb\\_snapshot\\_isolation'"
/** Settings of MariaDB that are 0 for the one statement behind it, whatever the session has. */
export function setFor(names: readonly string[]): string {
  return `set statement ${names.map((name) => `${name} = 0`).join(', ')} for `
}
export const waitAsBefore = 'set session innodb_lock_wait_timeout = @retrysafe_lock_wait'

export type Statements = ReturnType<typeof statementsFor>

/** The statements for one database. `schema` was checked by the factory and is quoted here. */
export function statementsFor(schema: string) {
  const table = `\`${schema}\`.retrysafe_intent`
  return { table, ...claimStatements(table), ...ownerStatements(table), ...upkeepStatements(table) }
}

function claimStatements(table: string) {
  /** A record that a new claim may replace, exactly as it was seen (rule 5). */
  function replaceable(identity: Identity, seen: Seen, callerNowMs: number): string {
    return `${is(identity)} and owner = ${token(seen.owner)} and generation = ${integer(seen.generation)}
      and (state = 2 or (state = 1 and ends_at <= ${now})
        or (state = 3 and ends_at <= ${retentionClock(callerNowMs)}))`
  }

  return {
    /** A read without a lock, which nothing can hold up. */
    lookUp: (identity: Identity, callerNowMs: number) =>
      `select ${seenColumns(callerNowMs)} from ${table} where ${is(identity)}`,
    /** What is committed now, whatever snapshot the transaction has. Only after an insert was refused by this very row, which is locked since (rule 36). */
    lookAgain: (identity: Identity, callerNowMs: number) =>
      `select ${seenColumns(callerNowMs)} from ${table} where ${is(identity)} lock in share mode`,
    insert: (claim: NewClaim) => {
      const { identity, owner, fingerprint } = claim
      const { state, end } = standing(claim)
      return `insert into ${table} (\`key\`, scope, state, owner, generation, attempts, fingerprint, ends_at)
        values (${text(identity.key)}, ${text(identity.scope)}, ${state}, ${token(owner)}, ${now}, 1, ${bytes(fingerprint)}, ${end})`
    },
    generation: (identity: Identity) => `select generation from ${table} where ${is(identity)}`,
    /** Raises where somebody has locked it, also a row that is not committed. Under READ COMMITTED it locks nothing where there is nothing. */
    probe: (identity: Identity) => `select 1 from ${table} where ${is(identity)} for update nowait`,
    /** The next generation and count of attempts of a record that may be taken over; nothing where it changed, lives, or is locked. */
    seize: (identity: Identity, seen: Seen, callerNowMs: number) =>
      `select greatest(generation + 1, ${now}), case when state = 3 then 1 else attempts + 1 end
        from ${table} where ${replaceable(identity, seen, callerNowMs)} for update skip locked`,
    /** MySQL assigns from left to right and lets the later see the earlier: `state` comes last. */
    takeOver: (claim: NewClaim, granted: { generation: number; attempts: number }) => {
      const { identity, owner, fingerprint } = claim
      const { state, end } = standing(claim)
      return `update ${table} set steps = case when state = 3 then null else steps end, outcome = null,
        owner = ${token(owner)}, generation = ${integer(granted.generation)}, attempts = ${integer(granted.attempts)},
        fingerprint = ${bytes(fingerprint)}, ends_at = ${end}, state = ${state} where ${is(identity)}`
    },
  }
}

function ownerStatements(table: string) {
  function ours(identity: Identity, owner: string, state = 1): string {
    return `${is(identity)} and owner = ${token(owner)} and state = ${state}`
  }

  /** Literal rows, joined by primary key: `force index`, because on a small table a scan would lock rows that are not asked for. */
  function join(asked: readonly Asked[]): string {
    const rows = asked.map(
      ({ identity, owner, leaseMs }, at) =>
        `select ${at} as at, ${text(identity.key)} as k, ${text(identity.scope)} as s, ${token(owner)} as o, ${micros(leaseMs)} as lease`,
    )
    return `(${rows.join(' union all ')}) asked straight_join ${table} i force index (primary)
      on i.\`key\` = asked.k and i.scope = asked.s and i.owner = asked.o and i.state = 1`
  }

  return {
    complete: (identity: Identity, owner: string, outcome: Uint8Array, retainMs: number, state?: number) =>
      `update ${table} set outcome = ${bytes(outcome)}, steps = null, ends_at = ${now} + ${micros(retainMs)}, state = 3
        where ${ours(identity, owner, state)}`,
    release: (identity: Identity, owner: string, retainMs: number) =>
      `update ${table} set ends_at = ${now} + ${micros(retainMs)}, state = 2 where ${ours(identity, owner)}`,
    /** A released record with steps is unfinished as well: retention does not drop it, it becomes unknown. */
    abandon: (identity: Identity, { owner, generation }: Seen, retainMs: number) =>
      `update ${table} set ends_at = ${now} + ${micros(retainMs)}, state = 4
        where ${is(identity)} and owner = ${token(owner)} and generation = ${integer(generation)}
          and (state = 1 or (state = 2 and steps is not null)) and ends_at <= ${now}`,
    /** Positions of those that are ours and free. */
    lockOurs: (asked: readonly Asked[]) => `select asked.at from ${join(asked)} for update skip locked`,
    /** Positions of those that are ours, locked or not. */
    findOurs: (asked: readonly Asked[]) => `select asked.at from ${join(asked)}`,
    renew: (asked: readonly Asked[]) =>
      `update ${join(asked)} set i.ends_at = ${now} + asked.lease where i.state = 1`,
    lockOne: (identity: Identity, owner: string) =>
      `select 1 from ${table} where ${ours(identity, owner)} for update skip locked`,
    findOne: (identity: Identity, owner: string) => `select 1 from ${table} where ${ours(identity, owner)}`,
    rename: (identity: Identity, owner: string, renamed: string) =>
      `update ${table} set owner = ${token(renamed)} where ${ours(identity, owner)}`,
  }
}

function upkeepStatements(table: string) {
  const past = (callerNowMs: number) => `sweep_at <= ${retentionClock(callerNowMs)}`
  return {
    sweepable: (limit: number, callerNowMs: number) =>
      `select hex(\`key\`), hex(scope) from ${table} force index (sweep) where ${past(callerNowMs)}
        order by sweep_at limit ${integer(limit)} for update skip locked`,
    /** Repeats the whole condition: nothing is deleted for what it was a moment ago (rule 20). */
    sweep: (found: readonly { key: string; scope: string }[], callerNowMs: number) =>
      `delete ${table} from (${found.map(({ key, scope }) => `select x'${key}' as k, x'${scope}' as s`).join(' union all ')}) asked
        straight_join ${table} force index (primary) on ${table}.\`key\` = asked.k and ${table}.scope = asked.s
        where ${table}.${past(callerNowMs)}`,
    /** What cannot be swept stands together in the index of what can: the few records that wait for somebody are found among millions. */
    list: (states: readonly number[], limit: number) =>
      `select hex(\`key\`), hex(scope), state, generation, attempts, ends_at > ${now}, (ends_at - ${now}) div 1000
        from ${table} where state in (${states.join(', ')})${states.some((state) => state === 2 || state === 3) ? '' : ' and sweep_at is null'}
        order by generation desc limit ${integer(limit)}`,
    count: `select state, count(*) from ${table} group by state`,
    resolveDone: (identity: Identity, generation: number, outcome: Uint8Array, retainMs: number) =>
      `update ${table} set outcome = ${bytes(outcome)}, ends_at = ${now} + ${micros(retainMs)}, state = 3
        where ${is(identity)} and generation = ${integer(generation)} and state = 4`,
    resolveReleased: (identity: Identity, generation: number, retainMs: number) =>
      `update ${table} set ends_at = ${now} + ${micros(retainMs)}, state = 2
        where ${is(identity)} and generation = ${integer(generation)}
          and (state in (4, 5) or (state = 1 and ends_at <= ${now}))`,
  }
}
