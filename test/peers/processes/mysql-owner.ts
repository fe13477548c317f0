/** Begins an attempt, writes an effect, says so, and waits to be killed: `node mysql-owner.js <url> <key> transaction|lease`. */
import { randomUUID } from 'node:crypto'
import { mysql } from '../../processes/own-mysql.js'
import { promisePool } from './mysql-store.js'

/** The mode of its attempt. */
export type OwnerMode = 'transaction' | 'lease'

const [url = '', key = '', mode = ''] = process.argv.slice(2)
const pool = promisePool(url)
const { transactions, claim } = mysql(pool)
const identity = { key, scope: 'tenant' }
const owner = randomUUID()
const fingerprint = Buffer.from('fingerprint-1')
const callerNowMs = Date.now()
if (mode === 'lease') await claim({ identity, owner, fingerprint, leaseMs: 1000, callerNowMs })
const open =
  mode === 'lease'
    ? await transactions.open({ identity, owner }, 60_000)
    : await transactions.begin({
        identity,
        owner,
        fingerprint: () => fingerprint,
        timeoutMs: 60_000,
        callerNowMs,
      })
await open.tx.query("insert into effect (`key`, note) values (?, 'killed')", [key])
process.stdout.write('at work\n')
process.stdin.resume()
