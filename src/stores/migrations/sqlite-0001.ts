import type { SqliteMigration } from './sqlite.js'

/**
 * The record's table. Text is compared by its bytes (`binary`), and `strict` keeps the key 01 from becoming the key 1.
 *
 * The table has a rowid of its own: without one the outcomes, up to 1 MiB, would stand in the tree that every look-up walks. The index of
 * ends holds what the sweeper may take and nothing else, so that renewals stay out of it.
 */
export const sqlite0001: SqliteMigration = {
  name: '0001_intent',
  statements: [
    `create table main.retrysafe_intent (
  key text collate binary not null,
  scope text collate binary not null,
  -- 1 running, 2 released, 3 done, 4 unknown, 5 dead
  state integer not null,
  -- Token of the last claim; kept when done.
  owner text not null,
  generation integer not null,
  attempts integer not null default 1,
  -- Running: end of the lease. Else: end of the retention. In ms since 1970.
  ends_at integer not null,
  fingerprint blob not null,
  -- What its steps have recorded; empty: none was begun.
  steps blob not null default x'',
  outcome blob,
  primary key (key, scope)
) strict`,
    `create index main.retrysafe_intent_sweep on retrysafe_intent (ends_at)
  where (state = 3 or (state = 2 and steps = x''))`,
    'create index main.retrysafe_intent_operator on retrysafe_intent (state) where state in (4, 5)',
    // The greatest generation that a sweeper has removed: what is claimed anew comes above it.
    'create table main.retrysafe_swept (generation integer not null) strict',
    'insert into main.retrysafe_swept (generation) values (0)',
  ],
}
