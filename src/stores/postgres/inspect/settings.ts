/** What the server's settings, as a session of the store sees them, do to what the store promises. */
import type { Finding } from '../../../store.js'
import { durationText, finding, fine } from '../../findings.js'

export type Settings = ReadonlyMap<string, string>

/** Asked by name; what this version of the server does not have is left out. */
export const settingNames: readonly string[] = [
  'synchronous_commit',
  'synchronous_standby_names',
  'fsync',
  'full_page_writes',
  'default_transaction_read_only',
  'default_transaction_isolation',
  'idle_in_transaction_session_timeout',
  'transaction_timeout',
  'idle_session_timeout',
  'tcp_keepalives_idle',
  'autovacuum',
]

/** Longest silence, in seconds, before the server asks whether the client is there; Linux waits 2 h when nobody says. */
const longestSilenceSeconds = 600

export function judgeSettings(settings: Settings): readonly Finding[] {
  return [
    synchronousCommit(settings),
    isOn(
      settings,
      'fsync',
      'A crash of the machine can lose or damage any record: nothing is on disk for sure.',
    ),
    isOn(
      settings,
      'full_page_writes',
      'A crash of the machine can leave half-written pages, of this table too.',
    ),
    readOnly(settings),
    isolation(settings),
    idleInTransaction(settings),
    otherLimits(settings),
    keepalives(settings),
    autovacuum(settings),
  ]
}

function synchronousCommit(settings: Settings): Finding {
  const id = 'synchronous-commit'
  const value = settings.get('synchronous_commit') ?? 'on'
  const standbys = settings.get('synchronous_standby_names') ?? ''
  const advice =
    'Set it to on for the role of this service (alter role … set synchronous_commit = on); \\drds shows where it was changed.'
  if (value === 'off') {
    const means =
      'A commit is answered before it is on disk. A crash of the server loses the last ones: callers have their reply, and a retry runs the work again.'
    return finding('error', id, 'synchronous_commit is off', means, advice)
  }
  if (value === 'local' && standbys !== '') {
    const means =
      'There are synchronous standbys, and these sessions do not wait for them. A failover loses the last commits: a retry runs the work again.'
    return finding('warn', id, 'synchronous_commit is local', means, advice)
  }
  return fine(id, `synchronous_commit is ${value}`)
}

function isOn(settings: Settings, name: 'fsync' | 'full_page_writes', means: string): Finding {
  const id = name.replaceAll('_', '-')
  if (settings.get(name) === 'on') return fine(id, `${name} is on`)
  const advice = `Set ${name} = on in postgresql.conf and reload. If it was off for long, take a fresh backup.`
  return finding('error', id, `${name} is off`, means, advice)
}

function readOnly(settings: Settings): Finding {
  const id = 'read-only'
  if (settings.get('default_transaction_read_only') !== 'on') return fine(id, 'sessions may write')
  const means = 'Claims of lease mode, renewals and sweeps are refused: callers get 503.'
  const advice =
    'Set default_transaction_read_only = off for the role and the database, or name the primary in the URL.'
  return finding('error', id, 'default_transaction_read_only is on', means, advice)
}

function isolation(settings: Settings): Finding {
  const id = 'isolation'
  const value = settings.get('default_transaction_isolation') ?? 'read committed'
  if (value === 'read committed') return fine(id, `default_transaction_isolation is ${value}`)
  const means =
    'The transactions of the store name their own level. Yours, around within(), have this one: they may end in a serialisation failure, which callers have to send again.'
  const advice = 'Nothing, if you want it. Else: alter role … set default_transaction_isolation = default.'
  return finding('note', id, `default_transaction_isolation is ${value}`, means, advice)
}

function idleInTransaction(settings: Settings): Finding {
  const id = 'idle-in-transaction'
  const limitMs = Number(settings.get('idle_in_transaction_session_timeout') ?? 0)
  const found = `idle_in_transaction_session_timeout is ${limitMs === 0 ? 'off' : durationText(limitMs)}`
  if (limitMs > 0) return fine(id, found)
  const means =
    'The transactions of the store set their own limit (workTimeoutMs). One of yours, around within(), that is forgotten keeps its keys held, and vacuum from its work, for as long as its connection lives.'
  const advice = "Set one for the role: alter role … set idle_in_transaction_session_timeout = '5min'."
  return finding('note', id, found, means, advice)
}

function otherLimits(settings: Settings): Finding {
  const id = 'time-limits'
  const limits = ['transaction_timeout', 'idle_session_timeout'].flatMap((name) => {
    const limitMs = Number(settings.get(name) ?? 0)
    return limitMs > 0 ? [`${name} is ${durationText(limitMs)}`] : []
  })
  if (limits.length === 0) return fine(id, 'no other limit ends transactions or sessions')
  const means =
    'transaction_timeout ends work that takes longer, and its caller gets 503; idle_session_timeout closes the idle connections of a pool, which costs a reconnect.'
  const advice =
    'Keep transaction_timeout above workTimeoutMs, and idle_session_timeout above the idle limit of the pool.'
  return finding('note', id, limits.join(', '), means, advice)
}

/** 0 where the connection is no TCP connection. */
function keepalives(settings: Settings): Finding {
  const id = 'keepalives'
  const seconds = Number(settings.get('tcp_keepalives_idle') ?? 0)
  if (seconds === 0) return fine(id, 'the connection is a local one')
  const found = `tcp_keepalives_idle is ${durationText(seconds * 1000)}`
  if (seconds <= longestSilenceSeconds) return fine(id, found)
  const means =
    'A machine that vanishes without a word (power, network) is noticed that late. Until then a key whose commit was under way stays held, and its connection stays taken.'
  const advice =
    'Set tcp_keepalives_idle = 60, tcp_keepalives_interval = 10, tcp_keepalives_count = 6 in postgresql.conf, and tcp_user_timeout to the like.'
  return finding('note', id, found, means, advice)
}

function autovacuum(settings: Settings): Finding {
  const id = 'autovacuum'
  if (settings.get('autovacuum') === 'on') return fine(id, 'autovacuum is on')
  const means = 'What the sweeper deletes is never given back: the table and its indexes grow without end.'
  return finding('warn', id, 'autovacuum is off', means, 'Set autovacuum = on in postgresql.conf and reload.')
}
