/** The server itself: its version, whether it is the primary, its replicas, its encoding and its clock. */
import { systemClock } from '../../../clock.js'
import type { Finding } from '../../../store.js'
import { finding, fine, judgeClock } from '../../findings.js'
import type { Row } from '../driver.js'
import { flagAt, integerAt, textAt } from '../rows.js'
import type { Ask } from './ask.js'

/** The first version whose tests are run here. */
const oldest = 130_000

const statement = `select current_setting('server_version_num')::integer as number, current_setting('server_version') as version,
  pg_is_in_recovery() as standby, current_setting('synchronous_standby_names') as synchronous,
  (select count(*) from pg_stat_replication where state is null or state = 'streaming') as replicas,
  (select pg_encoding_to_char(encoding) from pg_database where datname = current_database()) as encoding`

export async function inspectServer(ask: Ask): Promise<readonly Finding[]> {
  const [row] = await ask(statement)
  return [version(row), primary(row), failover(row), encoding(row), await clock(ask)]
}

function version(row: Row | undefined): Finding {
  const id = 'version'
  const found = `PostgreSQL ${textAt(row, 1)}`
  if (integerAt(row, 0) >= oldest) return fine(id, found)
  const means = 'The store was never tried on it.'
  return finding('error', id, found, means, 'Upgrade the server to PostgreSQL 13 or later.')
}

function primary(row: Row | undefined): Finding {
  const id = 'primary'
  if (!flagAt(row, 2)) return fine(id, 'the server is the primary')
  const means = 'A standby takes no claims: every caller gets 503, and nothing runs.'
  const advice =
    'Name the primary in the URL, or several hosts with target_session_attrs=read-write where the client knows it.'
  return finding('error', id, 'the server is a standby', means, advice)
}

/** A role without rights sees that there are replicas, and not what they do: those count too. */
function failover(row: Row | undefined): Finding {
  const id = 'failover'
  const replicas = integerAt(row, 4)
  if (replicas === 0) return fine(id, 'no replica streams from it')
  if (textAt(row, 3) !== '') return fine(id, `${replicas} streaming, synchronous: ${textAt(row, 3)}`)
  const means =
    'A failover to a replica that lags loses the last commits, records and effects alike: callers have their reply, and a retry runs the work again.'
  const advice =
    'Name a synchronous standby (synchronous_standby_names) if that must not be; it costs each commit a round trip to it.'
  return finding('note', id, `${replicas} streaming, none of them synchronous`, means, advice)
}

function encoding(row: Row | undefined): Finding {
  const id = 'encoding'
  const name = textAt(row, 5)
  if (name === 'UTF8') return fine(id, 'the database is in UTF8')
  const means = 'A key or a scope with a character that the database cannot hold is refused with 503.'
  const advice = 'Use a database in UTF8, or keys and scopes of ASCII only.'
  return finding('warn', id, `the database is in ${name}`, means, advice)
}

async function clock(ask: Ask): Promise<Finding> {
  const before = systemClock.now()
  const [row] = await ask(`select (date_part('epoch', clock_timestamp()) * 1000)::bigint as now_ms`)
  return judgeClock(before, integerAt(row, 0), systemClock.now())
}
