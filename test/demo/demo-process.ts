/** Starts what `npm start` runs, as a process of its own, on a data folder of the test's. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const program = join(import.meta.dirname, '../../build/demo/main.js')

export interface Demo {
  readonly url: string
  readonly process: ChildProcess
  /** Everything it has printed so far. */
  printed(): string
  /** Resolves when the process is gone. SIGTERM stops its database too, SIGKILL leaves that running. */
  stop(signal: NodeJS.Signals): Promise<void>
}

export function demoFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-demo-'))
  // Root runs the database as another account, which must be able to pass through.
  chmodSync(folder, 0o711)
  return folder
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}

export async function startDemo(folder: string, env: Record<string, string> = {}): Promise<Demo> {
  const child = spawn(process.execPath, [program], {
    env: { ...process.env, DATABASE_URL: '', DATA_DIR: folder, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  const url = await new Promise<string>((resolve, reject) => {
    const hear = (chunk: Buffer) => {
      text += chunk.toString()
      // The last of the commands: everything has been printed.
      const ready = /^Ready: (\S+)$[\s\S]*done; wait$/m.exec(text)?.[1]
      if (ready !== undefined) resolve(ready)
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('exit', (code, signal) => reject(new Error(`the demo ended with ${code ?? signal}:\n${text}`)))
  })

  async function stop(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }

  return { url, process: child, printed: () => text, stop }
}
