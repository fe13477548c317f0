/** Starts PostgreSQL in the directory given, says which, and waits to be killed (or for the end of its input). */
import { startPostgres } from '../../servers/postgres.js'

const [dataDirectory = ''] = process.argv.slice(2)
const server = await startPostgres({ dataDirectory })
process.stdout.write(`${JSON.stringify({ pid: server.pid, port: server.port })}\n`)
process.stdin.resume()
