/**
 * Every statement of the store, by name. Each names `main`, so that no temporary table stands in front of ours.
 *
 * Times are whole ms since 1970 by the clock inside SQLite, which is the machine's. `now` is the same all through one statement, and is asked anew
 * by the next: an end counts from the save, not from BEGIN (rule 5).
 */
const table = 'main.retrysafe_intent'

const now = "cast(round(unixepoch('subsec') * 1000) as integer)"
const named = 'key = :key and scope = :scope'
const ours = `${named} and owner = :owner and state = 1`

/** The clock that retention is judged by: SQLite's, but never ahead of the caller's by more than the tolerance (rule 5). */
const retentionClock = `min(${now}, :latest)`

/** A record that a new claim may replace (rule 5). */
const replaceable = `(state = 2 or (state = 1 and ends_at <= ${now}) or (state = 3 and ends_at <= ${retentionClock}))`

const exactlySeen = 'owner = :seen_owner and generation = :seen_generation'

/**
 * Above every generation that a sweeper has removed: the clock has only ms, and a record may be removed and claimed again within one.
 * The marker has the greatest of them.
 */
const firstGeneration = `max(${now} * 1000, 1 + (select generation from main.retrysafe_swept))`
const nextGeneration = `max(generation + 1, ${now} * 1000)`

/** Predicate of the sweeper's partial index, word for word: the planner must recognise it. */
const sweepable = "(state = 3 or (state = 2 and steps = x''))"

export const statements = {
  beginWriting: 'begin immediate',
  /**
   * Writes nothing, and fails where nothing can be written: BEGIN IMMEDIATE succeeds on a file that may only be read, and without our tables.
   */
  proveWritable: 'update main.retrysafe_swept set generation = generation where false returning 1',
  begin: 'begin',
  commit: 'commit',
  rollback: 'rollback',
  savepointClaim: 'savepoint retrysafe_claim',
  rollbackToClaim: 'rollback to retrysafe_claim',
  releaseClaim: 'release retrysafe_claim',
  savepointWithin: 'savepoint retrysafe_within',
  rollbackToWithin: 'rollback to retrysafe_within',
  releaseWithin: 'release retrysafe_within',
  savepointWork: 'savepoint retrysafe_work',
  rollbackToWork: 'rollback to retrysafe_work',
  totalChanges: 'select total_changes() as total',
  /** Its clock is read by the same statement as the record. */
  lookUp: `select state, owner, generation, attempts, fingerprint, outcome, steps <> x'' as has_steps, ends_at, ${now} as now_ms
    from ${table} where ${named}`,
  /** What a claim gets, seen under the write lock. */
  generations: `select ${firstGeneration} as first, ${now} * 1000 as clock`,
  /** The first claim of a record; nothing where one stands. */
  claim: `insert into ${table} (key, scope, state, owner, generation, fingerprint, ends_at)
    values (:key, :scope, 1, :owner, ${firstGeneration}, :fingerprint, ${now} + :lease_ms)
    on conflict (key, scope) do nothing returning generation, attempts`,
  takeOver: `update ${table} set state = 1, owner = :owner, generation = ${nextGeneration},
      attempts = case when state = 3 then 1 else attempts + 1 end, fingerprint = :fingerprint, ends_at = ${now} + :lease_ms,
      outcome = null, steps = case when state = 3 then x'' else steps end
    where ${named} and ${exactlySeen} and ${replaceable} returning generation, attempts`,
  /** A released record with steps is unfinished as well: retention does not drop it, it becomes unknown. */
  abandon: `update ${table} set state = 4, ends_at = ${now} + :retain_ms
    where ${named} and owner = :owner and generation = :generation
      and (state = 1 or (state = 2 and steps <> x'')) and ends_at <= ${now} returning 1`,
  renew: `update ${table} set ends_at = ${now} + :lease_ms where ${ours} returning 1`,
  complete: `update ${table} set state = 3, outcome = :outcome, ends_at = ${now} + :retain_ms where ${ours} returning 1`,
  release: `update ${table} set state = 2, ends_at = ${now} + :retain_ms where ${ours} returning 1`,
  renameOwner: `update ${table} set owner = :renamed where ${ours} returning 1`,
  /** The finished row, written with COMMIT; nothing where the work has put one there. */
  insertDone: `insert into ${table} (key, scope, state, owner, generation, fingerprint, ends_at, outcome)
    values (:key, :scope, 3, :owner, :generation, :fingerprint, ${now} + :retain_ms, :outcome)
    on conflict (key, scope) do nothing returning 1`,
  /** Where a dead row was seen: conditional on exactly that row. */
  replaceDone: `update ${table} set state = 3, owner = :owner, generation = :generation,
      attempts = case when state = 3 then 1 else attempts + 1 end, fingerprint = :fingerprint, ends_at = ${now} + :retain_ms,
      outcome = :outcome, steps = x''
    where ${named} and ${exactlySeen} and ${replaceable} returning 1`,
  /** Removes and tells what; `removed` then lifts the floor of the generations, in the same transaction. */
  sweep: `delete from ${table} where rowid in (
      select rowid from ${table} where ${sweepable} and ends_at <= ${retentionClock} order by ends_at limit :limit)
    returning generation`,
  swept: 'update main.retrysafe_swept set generation = max(generation, :generation) returning 1',
  list: (where: string) => `select key, scope, state, generation, attempts, ends_at, ${now} as now_ms
    from ${table} where ${where} order by generation desc limit :limit`,
  count: `select state, count(*) as records from ${table} group by state`,
  resolveDone: `update ${table} set state = 3, outcome = :outcome, ends_at = ${now} + :retain_ms
    where ${named} and generation = :generation and state = 4 returning 1`,
  resolveReleased: `update ${table} set state = 2, ends_at = ${now} + :retain_ms
    where ${named} and generation = :generation and (state in (4, 5) or (state = 1 and ends_at <= ${now})) returning 1`,
} as const
