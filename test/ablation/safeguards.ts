// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are those of the source.
/**
 * The safeguards, each with what takes it out of the built package and the test that must then fail. A change of the source that a
 * `from` no longer fits fails the run: the list is kept true to the code.
 */
export interface Safeguard {
  readonly name: string
  /** Exact text in a file of `dist/`, once there, and what stands in its place. */
  readonly patches: readonly { readonly file: string; readonly from: string; readonly to: string }[]
  /** A test file, and a part of the name of the test in it. */
  readonly test: readonly [file: string, name: string]
}

const statements = 'stores/postgres/statements.js'
const ending = 'stores/postgres/ending.js'
const nodePostgres = 'stores/postgres/node-postgres.js'
const guards = 'test/postgres/guards.test.ts'
const save = 'test/postgres/save.test.ts'
const suite = 'test/suites/postgres.test.ts'
const transaction = 'test/core/transaction.test.ts'
const lease = 'test/core/lease.test.ts'

function cut(
  name: string,
  [file, from, to]: readonly [string, string, string],
  test: Safeguard['test'],
): Safeguard {
  return { name, patches: [{ file, from, to }], test }
}

const ofPostgres: readonly Safeguard[] = [
  cut(
    'the unique index decides who wins (rule 1)',
    ['stores/migrations/postgres-0001.js', 'primary key (key, scope)', 'check (true)'],
    [save, 'a rival that committed meanwhile refuses the save'],
  ),
  cut(
    'the lock comes before the work (rule 1)',
    [
      statements,
      'lock: named(`select pg_try_advisory_xact_lock($1::bigint)',
      'lock: named(`select $1::bigint > -9e18',
    ],
    [suite, 'an open transaction is held against others'],
  ),
  cut(
    'complete and release name the owner token (rule 3)',
    [
      statements,
      "const ours = 'key = $1 and scope = $2 and owner = $3::uuid and state = 1'",
      "const ours = 'key = $1 and scope = $2 and $3::uuid is not null and state = 1'",
    ],
    [suite, 'nobody but the owner completes, releases or renews'],
  ),
  cut(
    'renewals name the owner token (rule 3)',
    [
      statements,
      'and i.owner = asked.owner and i.state = 1\n        for no key update',
      'and i.state = 1\n        for no key update',
    ],
    [suite, 'nobody but the owner completes, releases or renews'],
  ),
  cut(
    'a takeover is a compare-and-swap on what was seen (rule 5)',
    [
      statements,
      'where i.key = $1 and i.scope = $2 and i.owner = $3::uuid and i.generation = $4::bigint\n',
      'where i.key = $1 and i.scope = $2 and ($3::uuid is not null or $4::bigint > 0)\n',
    ],
    [suite, 'a takeover that names another owner or generation is refused'],
  ),
  cut(
    'a takeover judges the end again (rule 5)',
    [statements, "and ${replaceable('i', '$8')} and pg_try", 'and $8::bigint > 0 and pg_try'],
    [suite, 'a running record is taken over only past its end'],
  ),
  cut(
    'a takeover passes over a locked row (rule 6)',
    [statements, 'for no key update skip locked)\n      update', 'for no key update)\n      update'],
    [guards, 'a takeover does not wait for a locked row'],
  ),
  cut(
    'a dead row is replaced only as it was seen (rule 5)',
    [
      statements,
      "owner = case when i.owner = $9::uuid and i.generation = $10::bigint and ${replaceable('i', '$11')}",
      'owner = case when $9::uuid is not null and $10::bigint > 0 and $11::bigint > 0',
    ],
    [guards, 'a dead record that changed since the look-up is not replaced'],
  ),
  cut(
    'a generation is greater than the one before (section 3.2)',
    [statements, 'generation = greatest(i.generation + 1, ${microsNow})', 'generation = i.generation'],
    [suite, 'generations grow with every claim of a record'],
  ),
  cut(
    'a save that writes nothing raises (rule 3)',
    [statements, 'select 1 / count(*) from saved', 'select count(*) from saved'],
    [guards, "a zombie's last writes roll back with its refused save"],
  ),
  cut(
    'the save stands in the transaction of the claim (rule 21)',
    [statements, 'case when ${marker} = $8::bigint then $4::bigint end', 'coalesce($4::bigint, $8::bigint)'],
    [guards, "a save after the work's own COMMIT and BEGIN stores nothing"],
  ),
  cut(
    'the last writes stand in the transaction that was opened for them (rule 21)',
    [
      statements,
      'generation = case when ${marker} = $6::bigint then generation end',
      'generation = generation + 0 * $6::bigint',
    ],
    [guards, 'a save of the last writes after the work'],
  ),
  cut(
    'READ COMMITTED is said in words (rule 21)',
    [statements, 'begin: named(`begin isolation level ${isolation} read write`)', 'begin: named(`begin`)'],
    [guards, 'the isolation level is said in words'],
  ),
  cut(
    'a silent owner is rolled back by the server (rule 21)',
    [
      statements,
      "set_config('idle_in_transaction_session_timeout', $2, true)",
      "set_config('retrysafe.nothing', $2, true)",
    ],
    ['test/postgres/faults.test.ts', 'an idle owner is rolled back by the server'],
  ),
  cut(
    'COMMIT answered with ROLLBACK is no success (rule 21)',
    [ending, "results.at(-1)?.tag !== 'COMMIT'", 'results.length === 0'],
    ['test/crash/traps.test.ts', 'a COMMIT that the server answers with ROLLBACK is an error'],
  ),
  cut(
    'a tool that hides how COMMIT was answered is not believed (rule 21)',
    ['stores/postgres/tool.js', 'tellsEnd: false', 'tellsEnd: true'],
    ['test/postgres/tool.test.ts', 'a COMMIT that the server answers with ROLLBACK is no success'],
  ),
  cut(
    'a checked-out client has an error listener (rule 21)',
    [nodePostgres, "client.on('error', onError)", "client.on('errors', onError)"],
    ['test/postgres/faults.test.ts', 'a backend that dies while the work runs is told'],
  ),
  cut(
    'ends are written with the clock at the save (rule 5)',
    [statements, 'return `clock_timestamp() + ${parameter}', 'return `now() + ${parameter}'],
    [guards, 'retention counts from the save'],
  ),
  cut(
    'retention is never ahead of the caller (rule 5)',
    [
      statements,
      'least(${clock}, to_timestamp(${latest}::bigint / 1000.0))',
      'greatest(${clock}, to_timestamp(0 * ${latest}::bigint))',
    ],
    [suite, 'retention lasts as long as the caller says whose clock is behind'],
  ),
  cut(
    'the sweeper locks what it selects (rule 20)',
    [statements, 'limit $1::bigint for update skip locked', 'limit $1::bigint'],
    [guards, 'a sweeper neither waits for nor removes a record that is being renewed'],
  ),
  cut(
    'a point of no return pins the identity (rule 11)',
    [statements, "pin: named('select pg_advisory_lock($1::bigint)')", "pin: named('select $1::bigint')"],
    ['test/postgres/undo.test.ts', 'no rival gets in between'],
  ),
  cut(
    'statements in flight are awaited before the end (rule 21)',
    [
      'stores/postgres/guard.js',
      'pending.size === 0 ? nothingPending : Promise.all(pending).then(ignore)',
      'nothingPending',
    ],
    ['test/postgres/tx.test.ts', 'settling waits for statements in every form'],
  ),
  cut(
    '`tx` dies with the attempt (rule 21)',
    ['stores/postgres/guard.js', 'settled = true;', ''],
    [guards, 'the other branch of the work writes nothing after the rollback'],
  ),
  cut(
    '`tx` refuses transaction control (rule 21)',
    ['stores/postgres/guard.js', 'if (word === undefined)', 'if (word !== null)'],
    ['test/postgres/tx.test.ts', 'a refused statement is not sent'],
  ),
  cut(
    'a read-back asks for the lock (rule 10)',
    ['stores/postgres/begin.js', 'undecided: !granted', 'undecided: false'],
    [suite, 'while the transaction stands its end is undecided'],
  ),
]

const ofCore: readonly Safeguard[] = [
  cut(
    'the look-up speaks before the lock (rule 1)',
    [
      'protocol.js',
      'switch (seen.state) {',
      "if (!ask.granted) return refuse('held', seen);\n    switch (seen.state) {",
    ],
    ['test/core/decide.test.ts', 'a finished outcome is replayed whatever the lock said'],
  ),
  cut(
    'fingerprints are compared (rule 15)',
    ['fingerprint.js', 'if (exact.equals(', 'if (true || exact.equals('],
    [transaction, 'a rival’s record of another request makes it a mismatch'],
  ),
  cut(
    'an ambiguous commit is read back (rule 10)',
    ['transaction.js', 'return readBack(claim, end, outcome);', "throw fail('STORE_UNAVAILABLE');"],
    [transaction, 'a commit whose answer was lost but which landed is read back'],
  ),
  cut(
    'a commit under way is made harmless by a new token (rule 10)',
    ['commit.js', "mine ? 'renamed' : await transactions.renameOwner(owned, renamed)", "'renamed'"],
    ['test/core/commit.test.ts', 'a commit that was lost on its way is rolled back for certain'],
  ),
  cut(
    'a claim whose answer was lost is sent again under its token (rule 2)',
    ['lease-claim.js', '.catch(() => store.claim(request))', ''],
    [lease, 'a claim whose answer was lost is recognised'],
  ),
  cut(
    'a completion that fails is tried again (rule 8)',
    ['lease-work.js', 'if (leftMs <= 0)\n                throw failure;', 'throw failure;'],
    [lease, 'a completion that fails once before it is applied'],
  ),
  cut(
    'commit checks the lease (rule 18)',
    ['lease.js', 'if (!lease.isLost())', 'if (true)'],
    [lease, 'a blocked event loop fires no timer'],
  ),
  cut(
    'the signal fires before the lease ends (rule 18)',
    ['lease.js', 'leftMs() - terms.leaseMs * marginPart', 'leftMs() + terms.leaseMs'],
    [lease, 'when renewal throws until the end, the signal fires'],
  ),
  cut(
    'a leader lets its followers go, however it ends (rule 6)',
    ['engine.js', "joined.end({ kind: 'nothing' });", ''],
    ['test/core/sharing.test.ts', 'after a failure one of the followers claims'],
  ),
  cut(
    'the last byte is held back (rule 8)',
    ['http/held-body.js', 'Math.max(0, announced - 1 - passedLength)', 'announced - passedLength'],
    ['test/http/express5.test.ts', 'lease mode holds the last byte where a length was announced'],
  ),
  cut(
    'a client that hangs up is kept from the handler',
    ['http/capture.js', 'if (!isEnd || phase', 'if (isEnd || phase'],
    ['test/http/express5.test.ts', 'a client that hangs up neither cancels the work nor its outcome'],
  ),
]

export const safeguards: readonly Safeguard[] = [...ofPostgres, ...ofCore]
