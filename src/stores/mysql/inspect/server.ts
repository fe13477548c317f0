/** The server: its version, whether it takes writes, what a crash leaves of them, and its clock. */
import { systemClock } from '../../../clock.js'
import type { Finding } from '../../../store.js'
import { finding, fine, judgeClock } from '../../findings.js'
import type { Connection, Row } from '../driver.js'
import { integerAt, textAt } from '../rows.js'

/** Versions from which on the tests are run, or the statements are known to be the same. */
const oldest = { MariaDB: [10, 6], MySQL: [8, 0] } as const
/** An outcome of 1 MiB, the largest by default, as hexadecimal digits, and room for its statement. */
const leastPacket = 2.25 * 1024 * 1024

const settings = [
  'read_only',
  'super_read_only',
  'innodb_read_only',
  'innodb_flush_log_at_trx_commit',
  'innodb_doublewrite',
  'log_bin',
  'sync_binlog',
  'binlog_format',
  'transaction_isolation',
  'tx_isolation',
  'autocommit',
  'max_allowed_packet',
]

type Settings = ReadonlyMap<string, string>

export async function inspectServer(connection: Connection, mariadb: boolean): Promise<readonly Finding[]> {
  const [row] = (await connection.run('select version()')).rows
  const asked = await connection.run(
    `show session variables where variable_name in (${settings.map((name) => `'${name}'`).join(', ')})`,
  )
  const found: Settings = new Map(asked.rows.map((one) => [textAt(one, 0).toLowerCase(), one[1] ?? '']))
  return [
    version(row, mariadb ? 'MariaDB' : 'MySQL'),
    writable(found),
    flushed(found),
    doublewrite(found),
    binaryLog(found),
    isolation(found),
    autocommit(found),
    packet(found),
    await clock(connection),
  ]
}

function version(row: Row | undefined, product: 'MariaDB' | 'MySQL'): Finding {
  const id = 'version'
  const told = textAt(row, 0)
  const [major = 0, minor = 0] = told.split('.').map((part) => Number.parseInt(part, 10))
  const [leastMajor, leastMinor] = oldest[product]
  const found = `${product} ${told}`
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return fine(id, found)
  const means = 'The store was never tried on it.'
  return finding(
    'error',
    id,
    found,
    means,
    `Upgrade the server to ${product} ${leastMajor}.${leastMinor} or later.`,
  )
}

function isOn(settings: Settings, name: string): boolean {
  return !['', '0', 'off', 'no'].includes((settings.get(name) ?? '').toLowerCase())
}

function writable(settings: Settings): Finding {
  const id = 'primary'
  const closed = ['read_only', 'super_read_only', 'innodb_read_only'].filter((name) => isOn(settings, name))
  if (closed.length === 0) return fine(id, 'the server takes writes')
  const means =
    'A replica takes no claims: callers get 503, unless the role may write all the same, and then the replica has what its primary has not.'
  return finding('error', id, `${closed.join(', ')} is on`, means, 'Name the primary in the URL.')
}

function flushed(settings: Settings): Finding {
  const id = 'flush-log'
  const value = settings.get('innodb_flush_log_at_trx_commit') ?? ''
  const found = `innodb_flush_log_at_trx_commit is ${value}`
  const advice = 'Set innodb_flush_log_at_trx_commit = 1.'
  if (value === '1') return fine(id, found)
  if (value === '0') {
    const means =
      'A commit is answered before it is written anywhere. A crash of the server loses the last second: callers have their reply, and a retry runs the work again.'
    return finding('error', id, found, means, advice)
  }
  const means =
    'A crash of the machine (not of the server alone) loses the last second of commits: callers have their reply, and a retry runs the work again.'
  return finding('warn', id, found, means, advice)
}

function doublewrite(settings: Settings): Finding {
  const id = 'doublewrite'
  const found = `innodb_doublewrite is ${settings.get('innodb_doublewrite') ?? ''}`
  if (isOn(settings, 'innodb_doublewrite')) return fine(id, found)
  const means = 'A crash of the machine can leave half-written pages, of this table too.'
  return finding(
    'warn',
    id,
    found,
    means,
    'Switch it on, unless the file system writes pages of 16 KiB at once (ZFS).',
  )
}

function binaryLog(settings: Settings): Finding {
  const id = 'binary-log'
  const format = settings.get('binlog_format') ?? 'ROW'
  if (!isOn(settings, 'log_bin')) return fine(id, 'there is none')
  if (format.toUpperCase() === 'STATEMENT') {
    const means =
      'The server refuses the writes of READ COMMITTED transactions (1665), which ours are: callers get 503.'
    return finding('error', id, `its format is ${format}`, means, 'Set binlog_format = ROW.')
  }
  if (settings.get('sync_binlog') === '1') return fine(id, `${format}, synced with each commit`)
  const means =
    'After a crash of the machine the log may lack the last commits, or replicas have what the primary has not: a failover then loses records and effects.'
  const advice = 'Set sync_binlog = 1; it costs each commit one sync of the disk.'
  return finding('note', id, `sync_binlog is ${settings.get('sync_binlog') ?? ''}`, means, advice)
}

function isolation(settings: Settings): Finding {
  const id = 'isolation'
  const level = settings.get('transaction_isolation') ?? settings.get('tx_isolation') ?? ''
  const found = `the default isolation of transactions is ${level.replaceAll('-', ' ').toLowerCase()}`
  if (level !== 'SERIALIZABLE') return fine(id, found)
  const means =
    'The transactions of the store name their own level. Yours, around within(), have this one: their reads lock, and deadlocks come with it.'
  return finding(
    'note',
    id,
    found,
    means,
    "Nothing, if you want it. Else: set transaction_isolation = 'READ-COMMITTED'.",
  )
}

function autocommit(settings: Settings): Finding {
  const id = 'autocommit'
  if (isOn(settings, 'autocommit')) return fine(id, 'autocommit is on')
  const means =
    'The least read opens a transaction. The store ends those that it finds; connections of yours keep theirs.'
  return finding(
    'note',
    id,
    'autocommit is off',
    means,
    'Set autocommit = 1 for the sessions of this service.',
  )
}

function packet(settings: Settings): Finding {
  const id = 'max-packet'
  const bytes = Number(settings.get('max_allowed_packet') ?? 0)
  const found = `max_allowed_packet is ${bytes} bytes`
  if (bytes >= leastPacket) return fine(id, found)
  const means =
    'An outcome goes over the wire in twice its bytes. One that does not fit is refused, and its caller gets 503.'
  return finding(
    'warn',
    id,
    found,
    means,
    'Raise it to 16 MiB, or lower maxReplyBytes to a little under half of it.',
  )
}

async function clock(connection: Connection): Promise<Finding> {
  const before = systemClock.now()
  const { rows } = await connection.run(
    "select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) div 1000",
  )
  return judgeClock(before, integerAt(rows[0], 0), systemClock.now())
}
