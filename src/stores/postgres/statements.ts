/**
 * Every statement of the store, by name. Each names its schema, so that nobody's search_path decides where a record lives (rule 14).
 *
 * Ends are written with `clock_timestamp()`: `now()` is the start of the transaction, and work of 1.2 s with a retention of 1 s
 * would be born expired (rule 5). Inside transactions they are judged by it as well. `now()` itself serves as the marker of the
 * transaction that the claim stands in (rule 21): it is the same for all statements of one transaction and of no other.
 *
 * Bytes come back as `encode(…, 'hex')`, because `bytea_output` is a setting of the session.
 */
import { createHash } from 'node:crypto'
import type { Statement } from './driver.js'

const microsNow = "(date_part('epoch', clock_timestamp()) * 1000000)::bigint"
/** The transaction's own start in µs: the marker. `date_part` counts in floats, which hold µs until the year 2255; `extract` in slow decimals. */
const marker = "(date_part('epoch', now()) * 1000000)::bigint"

function end(parameter: string): string {
  return `clock_timestamp() + ${parameter}::bigint * interval '1 ms'`
}

/** The clock that retention is judged by: the store's, but never ahead of the caller's by more than the tolerance (rule 5). */
function retentionClock(latest: string, clock = 'clock_timestamp()'): string {
  return `least(${clock}, to_timestamp(${latest}::bigint / 1000.0))`
}

/** Read by `seenRecord` in rows.ts by place; the names differ, because some clients give rows as objects. */
function seenColumns(row: string, latest: string): string {
  return `${row}.state, ${row}.owner, ${row}.generation, ${row}.attempts,
    encode(${row}.fingerprint, 'hex') as fingerprint, encode(${row}.outcome, 'hex') as outcome, ${row}.steps <> '' as has_steps,
    ${row}.ends_at > case when ${row}.state = 1 then clock_timestamp() else ${retentionClock(latest)} end as live,
    (date_part('epoch', ${row}.ends_at - clock_timestamp()) * 1000)::bigint as left_ms,
    (date_part('epoch', clock_timestamp()) * 1000)::bigint as now_ms`
}

/** A record that a new claim may replace (rule 5). */
function replaceable(row: string, latest: string): string {
  return `(${row}.state = 2 or (${row}.state = 1 and ${row}.ends_at <= clock_timestamp())
    or (${row}.state = 3 and ${row}.ends_at <= ${retentionClock(latest)}))`
}

/** Past retention the intent is a new one, and so is its count. */
const attemptsAnew = 'case when i.state = 3 then 1 else i.attempts + 1 end'

/** Predicate of the sweeper's partial index, word for word: the planner must recognise it. */
const sweepable = `state = 3 or (state = 2 and steps = '')`

/** Names a statement by its text, so that a changed statement never meets an old plan of the same name. */
export function named(text: string): Statement {
  return { text, name: `retrysafe_${createHash('sha256').update(text).digest('hex').slice(0, 16)}` }
}

export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

export type Statements = ReturnType<typeof statementsFor>

/** The statements for one schema. `schema` was checked by the factory and is quoted here. */
export function statementsFor(schema: string, isolation: Isolation) {
  const table = `"${schema}".intent`
  return {
    ...transactionStatements(table, isolation),
    ...leaseStatements(table),
    ...upkeepStatements(table),
  }
}

function transactionStatements(table: string, isolation: Isolation) {
  // The marker's mismatch leaves `generation` NULL, a lost compare-and-swap leaves `owner` NULL: 23502 names the column.
  const insertDone = `insert into ${table} as i (key, scope, state, owner, generation, fingerprint, ends_at, outcome)
    values ($1, $2, 3, $3::uuid, case when ${marker} = $8::bigint then $4::bigint end, $5::bytea, ${end('$6')}, $7::bytea)`
  return {
    // In words, whatever default the session has: lock-first under REPEATABLE READ gets the lock and does not see the record (rule 21).
    begin: named(`begin isolation level ${isolation} read write`),
    beginCommitted: named('begin isolation level read committed read write'),
    commit: named('commit'),
    rollback: named('rollback'),
    savepointClaim: named('savepoint retrysafe_claim'),
    rollbackToClaim: named('rollback to savepoint retrysafe_claim'),
    releaseClaim: named('release savepoint retrysafe_claim'),
    savepointWork: named('savepoint retrysafe_work'),
    rollbackToWork: named('rollback to savepoint retrysafe_work'),
    /** free, marker, clock in µs. A statement of its own: with the look-up inside, its snapshot would be older than the lock. */
    lock: named(`select pg_try_advisory_xact_lock($1::bigint), ${marker} as began, ${microsNow} as now,
      set_config('idle_in_transaction_session_timeout', $2, true)`),
    /** Holds the identity beyond the transaction: without waiting, since this session has its lock already. */
    pin: named('select pg_advisory_lock($1::bigint)'),
    unpin: named('select pg_advisory_unlock($1::bigint)'),
    /** Raises (22012) unless this is still the transaction of the claim. */
    prove: named(`select 1 / (case when ${marker} = $1::bigint then 1 else 0 end)`),
    /** The same without touching a setting of the caller's transaction (rule 7). */
    lockOnly: named(`select pg_try_advisory_xact_lock($1::bigint), ${marker} as began, ${microsNow} as now`),
    /** For a transaction without a claim: marker only. */
    guardIdle: named(`select ${marker}, set_config('idle_in_transaction_session_timeout', $1, true)`),
    lookUp: named(`select ${seenColumns('i', '$3')} from ${table} i where i.key = $1 and i.scope = $2`),
    insertDone: named(insertDone),
    /** Where a dead row was seen: conditional on exactly that row, still dead. An upsert always would cost 7 % of the throughput. */
    replaceDone: named(`${insertDone}
      on conflict (key, scope) do update set
        owner = case when i.owner = $9::uuid and i.generation = $10::bigint and ${replaceable('i', '$11')}
          then excluded.owner end,
        state = 3, generation = excluded.generation, fingerprint = excluded.fingerprint,
        attempts = ${attemptsAnew}, ends_at = excluded.ends_at, outcome = excluded.outcome, steps = ''`),
    /** Insert-first: the claim is written before the work. */
    insertRunning: named(`insert into ${table} (key, scope, state, owner, generation, fingerprint, ends_at)
      values ($1, $2, 1, $3::uuid, ${microsNow}, $4::bytea, ${end('$5')}) returning generation`),
    /** Save of a row that is there: zero rows divide by zero (22012), so that the COMMIT behind it cannot succeed (rule 3). */
    finish: named(`with saved as (update ${table} set state = 3, outcome = $4::bytea, ends_at = ${end('$5')},
        generation = case when ${marker} = $6::bigint then generation end
        where key = $1 and scope = $2 and owner = $3::uuid and state = 1 returning 1)
      select 1 / count(*) from saved`),
    /** Whether an outcome was committed: asked behind a COMMIT whose tag the client does not tell. */
    stands: named(`select 1 from ${table} where key = $1 and scope = $2 and owner = $3::uuid and state = 3`),
    /** renamed, row was not locked, row is still ours in this snapshot. */
    renameOwner: named(`with free as (select key, scope, owner, state from ${table}
        where key = $1 and scope = $2 for no key update skip locked),
      renamed as (update ${table} i set owner = $4::uuid from free
        where i.key = free.key and i.scope = free.scope and free.owner = $3::uuid and free.state = 1 returning 1)
      select exists (select from renamed) as renamed, exists (select from free) as free,
        exists (select from ${table} where key = $1 and scope = $2 and owner = $3::uuid and state = 1) as ours`),
  }
}

function leaseStatements(table: string) {
  const ours = 'key = $1 and scope = $2 and owner = $3::uuid and state = 1'
  return {
    /**
     * Claim or read in one statement; empty when a rival committed between its snapshot and its insert, or when a
     * transaction holds the identity. The shared lock is free among lease-mode claims; it fails only while a transaction-mode
     * attempt runs, whose uncommitted row the INSERT would otherwise wait for (rule 6).
     */
    claim: named(`with taken as (
        insert into ${table} (key, scope, state, owner, generation, fingerprint, ends_at)
        select $1, $2, 1, $3::uuid, ${microsNow}, $4::bytea, ${end('$5')}
          where pg_try_advisory_xact_lock_shared($7::bigint)
        on conflict (key, scope) do nothing
        returning state, owner, generation, attempts, fingerprint, outcome, steps, ends_at)
      select true as claimed, ${seenColumns('taken', '$6')} from taken
      union all
      select false as claimed, ${seenColumns('i', '$6')} from ${table} i
        where i.key = $1 and i.scope = $2 and not exists (select from taken)`),
    /** Takes over exactly what was seen. A locked row is a held row: waiting for it drained a pool of three for 1.5 s. */
    takeOver: named(`with seen as (select i.key, i.scope from ${table} i
        where i.key = $1 and i.scope = $2 and i.owner = $3::uuid and i.generation = $4::bigint
          and ${replaceable('i', '$8')} and pg_try_advisory_xact_lock_shared($9::bigint)
        for no key update skip locked)
      update ${table} i set state = 1, owner = $5::uuid, generation = greatest(i.generation + 1, ${microsNow}),
        attempts = ${attemptsAnew}, fingerprint = $6::bytea, ends_at = ${end('$7')}, outcome = null, steps = case when i.state = 3 then '' else i.steps end
        from seen where i.key = seen.key and i.scope = seen.scope returning i.generation, i.attempts`),
    /** A released record with steps is unfinished as well: retention does not drop it, it becomes unknown. */
    abandon: named(`update ${table} set state = 4, ends_at = ${end('$5')}
      where key = $1 and scope = $2 and owner = $3::uuid and generation = $4::bigint
        and (state = 1 or (state = 2 and steps <> '')) and ends_at <= clock_timestamp() returning 1`),
    /**
     * Position, and whether it was extended. A row that is locked is passed over and said to be so: waiting for a commit that hangs would cost
     * every other lease of the process. Rows of one process only, so no order of locks is needed.
     */
    renew: named(`with asked as (
        select * from unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) with ordinality
          as asked (key, scope, owner, lease_ms, position)),
      free as (select i.key, i.scope, asked.lease_ms, asked.position from asked join ${table} i
          on i.key = asked.key and i.scope = asked.scope and i.owner = asked.owner and i.state = 1
        for no key update of i skip locked),
      renewed as (update ${table} i set ends_at = clock_timestamp() + free.lease_ms * interval '1 ms'
        from free where i.key = free.key and i.scope = free.scope and i.state = 1 returning free.position)
      select position, true from renewed
      union all
      select asked.position, false from asked join ${table} i
        on i.key = asked.key and i.scope = asked.scope and i.owner = asked.owner and i.state = 1
        where asked.position not in (select position from free)`),
    complete: named(
      `update ${table} set state = 3, outcome = $4::bytea, ends_at = ${end('$5')} where ${ours} returning 1`,
    ),
    release: named(`update ${table} set state = 2, ends_at = ${end('$4')} where ${ours} returning 1`),
  }
}

function upkeepStatements(table: string) {
  const past = `(${sweepable}) and ends_at <= ${retentionClock('$2', 'now()')}`
  return {
    /**
     * Locks what it selects and repeats the whole condition: without either, 95 records that had just been renewed were removed in
     * 15 s of ordinary load. `array(…)` runs once; as a joined subquery its LIMIT could be applied again and again.
     */
    sweep: named(`delete from ${table} where ctid = any(array(
        select ctid from ${table} where ${past} order by ends_at limit $1::bigint for update skip locked))
      and ${past} returning 1`),
    list: (states: readonly number[]) =>
      named(`select key, scope, state, generation, attempts, ends_at > now(),
        (date_part('epoch', ends_at - now()) * 1000)::bigint
        from ${table} where state in (${states.join(', ')}) order by generation desc limit $1::bigint`),
    count: named(`select state, count(*) from ${table} group by state`),
    resolveDone: named(`update ${table} set state = 3, outcome = $4::bytea, ends_at = ${end('$5')}
      where key = $1 and scope = $2 and generation = $3::bigint and state = 4 returning 1`),
    resolveReleased: named(`update ${table} set state = 2, ends_at = ${end('$4')}
      where key = $1 and scope = $2 and generation = $3::bigint
        and (state in (4, 5) or (state = 1 and ends_at <= clock_timestamp())) returning 1`),
  }
}
