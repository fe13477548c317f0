/**
 * Other processes that race for one ledger. One machine and one clock, but connections, memory and event loops of their own: what a
 * store keeps in its process instead of in the ledger shows here.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { StoreHarness } from './harness.js'
import type { Task, Tasks } from './tasks.js'

/** What goes to a child: how to open its store, then tasks. */
export type ToChild =
  | { readonly id: number; readonly do: 'open'; readonly module: string; readonly data: unknown }
  | { readonly id: number; readonly do: 'task'; readonly task: Task }

/** What comes back. */
export interface FromChild {
  readonly id: number
  readonly answer?: unknown
  /** The stack of what went wrong. */
  readonly failure?: string
}

export interface Processes {
  /** Gives every process its task at once, and waits for all. */
  all<Name extends keyof Tasks>(
    name: Name,
    asked: (index: number) => Tasks[Name]['asked'],
  ): Promise<readonly Tasks[Name]['answer'][]>
  stop(): Promise<void>
}

type Module = NonNullable<StoreHarness<object>['processes']>

/** Starts processes and waits until each has opened its store, so that they start their tasks together. */
export async function startProcesses(source: Module, count: number): Promise<Processes> {
  const module = typeof source.module === 'string' ? pathToFileURL(source.module) : source.module
  const script = fileURLToPath(new URL('./child.js', import.meta.url))
  // `advanced` is a structured clone: bytes stay bytes. Without execArgv, so that no loader or inspector of the runner comes along.
  const children = Array.from({ length: count }, () =>
    fork(script, { serialization: 'advanced', execArgv: [] }),
  )
  // Errors reach whoever asks; between two questions there is nobody to tell.
  for (const child of children) child.on('error', () => undefined)
  let ids = 0

  async function stop(): Promise<void> {
    await Promise.all(children.map(end))
  }

  async function all<Name extends keyof Tasks>(
    name: Name,
    asked: (index: number) => Tasks[Name]['asked'],
  ): Promise<readonly Tasks[Name]['answer'][]> {
    const answers = children.map((child, index) => {
      ids += 1
      return ask(child, { id: ids, do: 'task', task: { do: name, asked: asked(index) } as Task })
    })
    return (await Promise.all(answers)) as readonly Tasks[Name]['answer'][]
  }

  try {
    await Promise.all(
      children.map((child) => {
        ids += 1
        return ask(child, { id: ids, do: 'open', module: module.href, data: source.data })
      }),
    )
  } catch (error) {
    await stop()
    throw error
  }
  return { all, stop }
}

function ask(child: ChildProcess, message: ToChild): Promise<unknown> {
  return new Promise((resolve, reject) => {
    function settle(): void {
      child.off('message', hear)
      child.off('exit', gone)
      child.off('error', broken)
    }
    function hear(heard: unknown): void {
      const { id, answer, failure } = heard as FromChild
      if (id !== message.id) return
      settle()
      if (failure === undefined) resolve(answer)
      else reject(new Error(`in a process of the suite: ${failure}`))
    }
    function gone(code: number | null): void {
      settle()
      reject(new Error(`a process of the suite ended with code ${code} before it answered`))
    }
    function broken(error: Error): void {
      settle()
      reject(error)
    }
    child.on('message', hear)
    child.on('exit', gone)
    child.on('error', broken)
    // A child that is gone answers with an error here, and with `exit` as well; whichever comes first is told.
    child.send(message, (error) => error && broken(error))
  })
}

/** A child ends by itself when its channel closes. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  if (child.connected) child.disconnect()
  await exit
}
