/**
 * A TCP proxy in front of PostgreSQL that numbers what clients send and fails at the message a test names. So every point of a request
 * can be cut: record one clean run, then repeat it once for each of its messages.
 */
import { connect, createServer, type Server } from 'node:net'
import { type CutAct, type Link, openLink } from './cut-link.js'

export type { CutAct } from './cut-link.js'

/** Where a run fails, and how. */
export interface CutPlan {
  /**
   * Number of the message, from 1, over all connections and in the order of arrival; or tells the message by itself, where a pool decides how
   * many others there are. The first that fits.
   */
  readonly at: number | ((message: CutMessage) => boolean)
  /**
   * `cutBefore`: it never reaches the server. `cutAfter`: it does, and its answer never comes back. Both sides are then reset. `holdBefore` and
   * `holdAfter`: its connection stands still instead, there or behind it, until {@link CutRun.release}.
   */
  readonly act: CutAct
  /** A held connection is released by itself after this long, in ms. Default: not by itself. */
  readonly holdMs?: number
  /** What becomes of it then: it goes on where it stood, or is cut. Default `go`. */
  readonly holdEnd?: 'go' | 'cut'
}

/** A message that a client has sent; its goodbye (`X`) passes and is not counted. */
export interface CutMessage {
  readonly number: number
  /** Number of its connection, from 1. */
  readonly connection: number
  /** The protocol's letter: `P` parse, `B` bind, `E` execute, `S` sync, `Q` query; or `startup`, `ssl`, `gss`, `cancel`. */
  readonly type: string
  /** The statement that it carries, if any. */
  readonly text: string
}

/** What goes on between two calls of `run`. */
export interface CutRun {
  /** What clients have sent so far. */
  messages(): readonly CutMessage[]
  /** Whether the plan's message was reached. A run whose fault did not fire has shown nothing. */
  fired(): boolean
  /** Resolves when it is reached. */
  readonly reached: Promise<void>
  /** Ends a hold. */
  release(how: 'go' | 'cut'): void
}

/** A proxy in front of one server. */
export interface CuttingProxy {
  readonly host: string
  readonly port: number
  /** Numbers from 1 again, with at most one fault; what an earlier run holds is let go. */
  run(plan?: CutPlan): CutRun
  /** Resets every connection. */
  cut(): void
  /** Lets nothing through, in either direction, until `resume()`. */
  pause(): void
  resume(): void
  /** Resolves when the server has ended each connection whose client is gone: it has then rolled back what was not committed. */
  settled(): Promise<void>
  close(): Promise<void>
}

/**
 * Opens a proxy on a free port of the loopback interface.
 *
 * It reads messages, so connections through it must not be encrypted. `host` is the server's, `127.0.0.1` by default. Rejects when no port
 * can be had.
 *
 * @example
 * ```ts
 * const proxy = await cuttingProxy({ port: 5432 })
 * const run = proxy.run({ at: 12, act: 'cutAfter' })
 * // One attempt through `proxy.port`, and then:
 * if (!run.fired()) throw new Error('nothing was cut')
 * ```
 */
export async function cuttingProxy(target: {
  readonly port: number
  readonly host?: string
}): Promise<CuttingProxy> {
  const links = new Set<Link>()
  let connections = 0
  let current = startRun(undefined)

  const listener = createServer((client) => {
    const server = connect(target.port, target.host ?? '127.0.0.1')
    connections += 1
    const connection = connections
    const link = openLink(client, server, ({ type, text }, own) =>
      current.arrive(own, connection, type, text),
    )
    links.add(link)
    link.over.then(() => links.delete(link))
  })
  const { host, port } = await listening(listener)

  function run(plan?: CutPlan): CutRun {
    current.release('go')
    current = startRun(plan)
    return current
  }

  function each(act: 'cut' | 'pause' | 'resume'): void {
    for (const link of links) link[act]()
  }

  async function settled(): Promise<void> {
    // One turn of the event loop: a client that has just been destroyed is seen to be gone.
    await new Promise((resume) => setImmediate(resume))
    await Promise.all([...links].filter((link) => link.isGone()).map((link) => link.over))
  }

  async function close(): Promise<void> {
    const closed = new Promise((resolve) => listener.close(resolve))
    current.release('cut')
    each('cut')
    await closed
  }

  return {
    host,
    port,
    run,
    settled,
    close,
    cut: () => each('cut'),
    pause: () => each('pause'),
    resume: () => each('resume'),
  }
}

interface Running extends CutRun {
  arrive(link: Link, connection: number, type: string, text: string): CutAct | undefined
}

function startRun(plan: CutPlan | undefined): Running {
  const seen: CutMessage[] = []
  let held: Link | undefined
  let fired = false
  let reach: () => void = () => undefined
  const reached = new Promise<void>((resolve) => {
    reach = resolve
  })

  function arrive(link: Link, connection: number, type: string, text: string): CutAct | undefined {
    // A pool says goodbye when it likes, also after its `end()`: counted, it would move every number behind it.
    if (type === 'X') return undefined
    const message = { number: seen.length + 1, connection, type, text }
    seen.push(message)
    if (plan === undefined || fired || !isMeant(plan, message)) return undefined
    fired = true
    held = link
    // After the act, so that who waits for it finds it done.
    setImmediate(reach)
    if (plan.holdMs !== undefined) setTimeout(release, plan.holdMs, plan.holdEnd ?? 'go')
    return plan.act
  }

  function release(how: 'go' | 'cut'): void {
    held?.release(how)
  }

  return { messages: () => seen, fired: () => fired, reached, release, arrive }
}

function isMeant({ at }: CutPlan, message: CutMessage): boolean {
  return typeof at === 'function' ? at(message) : at === message.number
}

function listening(server: Server): Promise<{ host: string; port: number }> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      if (typeof address !== 'object' || address === null) return reject(new Error('the proxy has no port'))
      resolve({ host: address.address, port: address.port })
    })
  })
}
