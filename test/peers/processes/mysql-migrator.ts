/** Migrates, and says which migrations it ran: `mysql-migrator.js <url> <schema>`. */
import { mysql } from '../../processes/own-mysql.js'
import { promisePool } from './mysql-store.js'

const [url = '', schema = ''] = process.argv.slice(2)
const pool = promisePool(url)
process.send?.(await mysql(pool, { schema }).migrate())
await pool.end()
process.disconnect()
