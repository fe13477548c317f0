/** The store's own table: whether it is there, whole, bytewise unique, durable, and open to this role. */
import type { Finding } from '../../../store.js'
import { finding, fine, judgeMigrations, missingTables } from '../../findings.js'
import { migrations } from '../../migrations/postgres.js'
import type { Row } from '../driver.js'
import { flagAt, textAt } from '../rows.js'
import type { Ask } from './ask.js'

/** From the catalog, which everybody may read: a role without a right must still be told which one. */
const placeStatement = `select n.oid is not null as schema_there, i.oid is not null as table_there, m.oid is not null as ledger_there,
  coalesce(has_table_privilege(m.oid, 'select'), false) and coalesce(has_schema_privilege(n.oid, 'usage'), false) as ledger_open,
  concat_ws(', ', case when not has_schema_privilege(n.oid, 'usage') then 'USAGE on the schema' end,
    case when not has_table_privilege(i.oid, 'select') then 'SELECT' end,
    case when not has_table_privilege(i.oid, 'insert') then 'INSERT' end,
    case when not has_table_privilege(i.oid, 'update') then 'UPDATE' end,
    case when not has_table_privilege(i.oid, 'delete') then 'DELETE' end) as lacking
  from (select 1) one left join pg_namespace n on n.nspname = $1
  left join pg_class i on i.relnamespace = n.oid and i.relname = 'intent'
  left join pg_class m on m.relnamespace = n.oid and m.relname = 'migration'`

const tableStatement = `select c.relpersistence, row_security_active(c.oid) as hidden,
  exists (select from pg_index x join pg_class p on p.oid = x.indexrelid
    where x.indrelid = c.oid and p.relname = 'intent_pkey' and x.indisunique and x.indimmediate and x.indpred is null
      and x.indexprs is null and x.indisvalid and x.indisready and
      (select array_agg(a.attname order by a.attname) from unnest((x.indkey::int2[])[0:x.indnkeyatts - 1]) as k (number)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number) = array['key', 'scope']::name[]) as one_each,
  (select count(*) from pg_index x join pg_class p on p.oid = x.indexrelid
    where x.indrelid = c.oid and x.indisvalid and p.relname in ('intent_sweep', 'intent_operator')) = 2 as quick,
  (select string_agg(a.attname || ' by ' || l.collname, ', ' order by a.attname) from pg_attribute a
    join pg_collation l on l.oid = a.attcollation where a.attrelid = c.oid and a.attname in ('key', 'scope')
      and l.collname not in ('C', 'POSIX')) as by_language,
  (select coalesce(bool_and(l.collisdeterministic), true) from pg_attribute a
    join pg_collation l on l.oid = a.attcollation where a.attrelid = c.oid and a.attname in ('key', 'scope')) as by_bytes
  from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = 'intent'`

export interface Place {
  /** Whether the table can be asked for its rows. */
  readonly open: boolean
  readonly findings: readonly Finding[]
}

export async function inspectTable(ask: Ask, schema: string): Promise<Place> {
  const [place] = await ask(placeStatement, schema)
  const found = flagAt(place, 0) ? `schema "${schema}" has no table intent` : `there is no schema "${schema}"`
  if (!flagAt(place, 1)) return { open: false, findings: [missingTables(found)] }
  const [table] = await ask(tableStatement, schema)
  const rights = lackingRights(textAt(place, 4), schema)
  return {
    open: rights.level === 'ok',
    findings: [
      await migrated(ask, place, schema),
      rights,
      uniqueIndex(table, schema),
      helpfulIndexes(table),
      collation(table),
      durable(table, schema),
      rowSecurity(table, schema),
    ],
  }
}

async function migrated(ask: Ask, place: Row | undefined, schema: string): Promise<Finding> {
  const id = 'migrations'
  if (flagAt(place, 2) && !flagAt(place, 3)) {
    const means = 'Whether the tables fit this version cannot be told; to work, the role needs no such right.'
    const advice = `Ask as the owner of the tables, or grant select on "${schema}".migration.`
    return finding('note', id, 'this role may not read which migrations ran', means, advice)
  }
  const rows = flagAt(place, 2) ? await ask(`select name from "${schema}".migration order by name`) : []
  const ran = rows.map((row) => textAt(row, 0))
  return judgeMigrations(
    migrations.map(({ name }) => name),
    ran,
  )
}

function lackingRights(lacking: string, schema: string): Finding {
  const id = 'rights'
  if (lacking === '') return fine(id, 'this role may select, insert, update and delete')
  const means = 'What needs it is refused by the database, and callers get 503.'
  const advice = `grant usage on schema "${schema}" to …; grant select, insert, update, delete on "${schema}".intent to …`
  return finding('error', id, `this role lacks ${lacking}`, means, advice)
}

function uniqueIndex(table: Row | undefined, schema: string): Finding {
  const id = 'unique-index'
  if (flagAt(table, 2)) return fine(id, 'intent_pkey is unique over key and scope, and valid')
  const means =
    'Nothing decides between two attempts of one key: both may run. Every promise of the store rests on this index.'
  const advice = `Stop writing, remove duplicate rows of (key, scope), then: alter table "${schema}".intent add constraint intent_pkey primary key (key, scope)`
  return finding('error', id, 'there is no valid intent_pkey over key and scope', means, advice)
}

function helpfulIndexes(table: Row | undefined): Finding {
  const id = 'indexes'
  if (flagAt(table, 3)) return fine(id, 'intent_sweep and intent_operator are there')
  const means = 'The sweeper, or the list of unknown records, reads the whole table each time.'
  return finding(
    'warn',
    id,
    'intent_sweep or intent_operator is missing',
    means,
    'Create it as `retrysafe sql` prints it.',
  )
}

function collation(table: Row | undefined): Finding {
  const id = 'collation'
  const byLanguage = table?.[4] ?? ''
  if (!flagAt(table, 5)) {
    const means = 'The database takes keys for equal that are not: one caller gets the reply of another.'
    return finding(
      'error',
      id,
      byLanguage,
      means,
      'Give both columns collate "C" again, as `retrysafe sql` has them.',
    )
  }
  if (byLanguage === '') return fine(id, 'key and scope are compared by bytes')
  const means =
    'Equal is still equal, but the order of the index follows a library of the operating system: an upgrade of it can break the index, and with it uniqueness.'
  return finding(
    'warn',
    id,
    byLanguage,
    means,
    'Give both columns collate "C" again, as `retrysafe sql` has them.',
  )
}

function durable(table: Row | undefined, schema: string): Finding {
  const id = 'logged'
  if (textAt(table, 0) === 'p') return fine(id, 'the table is logged')
  const means =
    'A crash of the server empties it, and a replica never has it: every retry after that runs again.'
  return finding('error', id, 'the table is unlogged', means, `alter table "${schema}".intent set logged`)
}

function rowSecurity(table: Row | undefined, schema: string): Finding {
  const id = 'row-security'
  if (!flagAt(table, 1)) return fine(id, 'no row is hidden from this role')
  const means =
    'Records that a policy hides count as absent in a look-up and as duplicates in a write: callers get 503.'
  return finding(
    'error',
    id,
    'row level security hides records',
    means,
    `alter table "${schema}".intent disable row level security`,
  )
}
