/**
 * A PostgreSQL for tests: made in a fresh folder, and gone afterwards, also when its owner is killed.
 */
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PostgresOptions, type PostgresServer, type StopMode, startPostgres } from './postgres.js'

/**
 * Ends the server and removes its folder when this process is gone, however it went: it waits for the end of a pipe that
 * only this process holds. It is also what removes the folder in the normal case, so it is tried every time.
 */
const watcher = `
read -r line
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
serves() { case "$(tr '\\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null || ps -p "$pid" -o args=)" in *"$1/data"*) true ;; *) false ;; esac; }
if [ -n "$pid" ] && serves "$1"; then kill -QUIT "$pid"; fi
while [ -n "$pid" ] && serves "$1"; do sleep 0.1; done
rm -rf "$1"
`

function watch(folder: string): () => Promise<void> {
  const child = spawn('/bin/sh', ['-c', watcher, 'sh', folder], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.unref()
  const gone = new Promise<void>((done) => child.once('exit', () => done()))
  return () => {
    child.ref()
    child.stdin.end()
    return gone
  }
}

/** Starts a server of its own; `stop` ends it for good and removes its data, `restart` and `kill` keep them. */
export async function temporaryPostgres(
  options: Omit<PostgresOptions, 'dataDirectory' | 'temporary'> = {},
): Promise<PostgresServer> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'retrysafe-test-')))
  chmodSync(folder, 0o711)
  const remove = watch(folder)
  try {
    const server = await startPostgres({ ...options, dataDirectory: join(folder, 'data'), temporary: true })
    async function stop(mode: StopMode = 'immediate'): Promise<void> {
      await server.stop(mode)
      await remove()
    }
    return Object.create(server, { stop: { value: stop, enumerable: true } })
  } catch (error) {
    await remove()
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}
