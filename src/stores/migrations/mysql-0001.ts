import type { Migration } from './mysql.js'

/**
 * The record's table: bytes for every text, so that no collation decides what is equal (rule 14), and integers for every instant. 255 code points of the key and 320 of
 * scope and operation take 2,300 of the 3,072 bytes that an index of InnoDB may have. The key stands before the scope, because keys drawn in time
 * order fill the table at its right edge.
 *
 * `sweep_at` is where a sweeper may take the record, and NULL while it may not: a lease that is renewed moves nothing in the index.
 */
export const mysql0001: Migration = {
  name: '0001_intent',
  statements: (schema) => [
    `create table if not exists ${schema}.retrysafe_intent (
  \`key\` varbinary(1020) not null,
  scope varbinary(1280) not null,
  -- 1 running, 2 released, 3 done, 4 unknown, 5 dead
  state tinyint not null,
  -- Token of the last claim; kept when done.
  owner binary(16) not null,
  generation bigint not null,
  attempts int not null,
  -- Running: end of the lease. Else: end of the retention. In µs since 1970.
  ends_at bigint not null,
  fingerprint varbinary(255) not null,
  -- What its steps have recorded; NULL: none was begun.
  steps longblob,
  outcome longblob,
  sweep_at bigint generated always as (case when state = 3 or (state = 2 and steps is null) then ends_at end) stored,
  primary key (\`key\`, scope),
  key sweep (sweep_at)
) engine = InnoDB row_format = dynamic`,
  ],
}
