/** Migrates, and says which migrations it ran: `mysql-migrator.js <url> <schema>`. */
import { mysql } from '../../processes/own-mysql.js'
import { promisePool } from './mysql-store.js'

/** What it says: the names of the migrations. */
export type Ran = readonly string[]

const [url = '', schema = ''] = process.argv.slice(2)
const pool = promisePool(url)
const ran: Ran = await mysql(pool, { schema }).migrate()
process.send?.(ran)
await pool.end()
process.disconnect()
