/** MySQL and MariaDB by URL, over mysql2 or the connector of MariaDB, whichever the user has; the scheme says which is asked for first. */
import { type MariadbPool, type Mysql2PromisePool, mysql } from '../../stores/mysql.js'
import { installedDriver } from '../driver.js'
import { type OpenedStore, schemeOf, type Target } from './target.js'

const connections = 2
const connectLimitMs = 10_000

interface Ending {
  end(): Promise<unknown>
}

interface Mysql2 {
  createPool(options: object): Mysql2PromisePool & Ending
}

interface Mariadb {
  createConnection(url: string): Promise<Ending>
  createPool(url: string): MariadbPool & Ending
}

export async function openMysql({ url, schema, cwd }: Target): Promise<OpenedStore> {
  const names = ['mysql2/promise', 'mariadb']
  const { name, module } = await installedDriver<Mysql2 | Mariadb>(
    cwd,
    schemeOf(url) === 'mariadb:' ? names.toReversed() : names,
  )
  const pool = name === 'mariadb' ? await ofMariadb(module as Mariadb, url) : ofMysql2(module as Mysql2, url)
  const store = mysql(pool, schema === undefined ? {} : { schema })
  return { store, close: async () => void (await pool.end()) }
}

function ofMysql2({ createPool }: Mysql2, uri: string) {
  return createPool({ uri, connectionLimit: connections, connectTimeout: connectLimitMs })
}

/** The connector knows its own scheme only, and no URL without a database; ours is named in every statement, so any that exists will do. */
async function ofMariadb({ createConnection, createPool }: Mariadb, url: string) {
  const named = new URL(url)
  named.protocol = 'mariadb:'
  if (named.pathname.length < 2) named.pathname = '/information_schema'
  named.searchParams.set('connectionLimit', String(connections))
  named.searchParams.set('connectTimeout', String(connectLimitMs))
  // Its pool tries again for ten seconds and then says only that it has none.
  await (await createConnection(named.href)).end()
  return createPool(named.href)
}
