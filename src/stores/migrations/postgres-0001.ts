import type { Migration } from './postgres.js'

/**
 * The record's table. About 500 bytes a key with a reply of 250 bytes; the key stands before the scope in the primary key, because keys
 * drawn in time order keep the index warm at its right edge, while a scope in front makes every tenant a hot page of its own.
 *
 * Wide columns come first, and a done record holds no NULL: padding and a map of NULLs would cost 18 bytes a key.
 *
 * The index of ends holds what the sweeper may take and nothing else: about 20 bytes a key, and the renewals of running records stay out of it.
 * The second one holds next to nothing: it finds the few records that wait for an operator among millions that do not.
 */
export const postgres0001: Migration = {
  name: '0001_intent',
  statements: (schema) => [
    `create table ${schema}.intent (
  generation bigint not null,
  -- Running: end of the lease. Else: end of the retention.
  ends_at timestamptz not null,
  attempts integer not null default 1,
  -- 1 running, 2 released, 3 done, 4 unknown, 5 dead
  state smallint not null,
  -- Token of the last claim; kept when done.
  owner uuid not null,
  key text collate "C" not null,
  scope text collate "C" not null,
  fingerprint bytea not null,
  -- What its steps have recorded, appended to; empty: none was begun.
  steps bytea not null default '',
  outcome bytea,
  constraint intent_pkey primary key (key, scope)
)`,
    `create index intent_sweep on ${schema}.intent (ends_at) where state = 3 or (state = 2 and steps = '')`,
    `create index intent_operator on ${schema}.intent (state) where state in (4, 5)`,
    // A sweeper deletes steadily from a table that may be large: the default of a fifth of it would let dead rows pile up first.
    `alter table ${schema}.intent set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)`,
  ],
}
