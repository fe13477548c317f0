/**
 * The site a case runs on: the framework's application around handlers of the suite, a store with faults behind it, a client in front.
 */
import { randomUUID } from 'node:crypto'
import type { HttpAttempt } from '../../http/exchange.js'
import type { Reply } from '../../http/reply.js'
import type { Options } from '../../options.js'
import { retrysafe } from '../../retrysafe.js'
import { type FaultPlan, planFaults } from '../faults.js'
import { withFaults } from '../faulty-store.js'
import { replyOf, statusOf } from './answers.js'
import type { Given, HttpHarness, HttpRoute, RouteOptions, Said } from './harness.js'
import { type Got, type Sending, send } from './wire.js'

/** A route as a case describes it. Its handler writes one effect, and then answers as told. */
export interface Route {
  /** Default POST. */
  readonly method?: string
  /** Default `/orders`. */
  readonly path?: string
  readonly options?: RouteOptions
  /** Default: 201 with a value that no other run has. `run` counts the runs of this site from 1. */
  say?(given: Given<unknown> & { readonly run: number }): Promise<Said> | Said
}

export interface Site {
  readonly url: string
  readonly faults: FaultPlan
  /** Sends to a path, `/orders` unless named, under a key of this site's own unless named. */
  send(sending?: Sending & { readonly path?: string }): Promise<Got>
  /** Whether the handlers write through the promise: one that exists in lease mode writes outside of it. */
  readonly covered: boolean
  /** Where the outcome is written. */
  readonly writes: 'save' | 'complete'
  /** The key of this site. */
  readonly key: string
  /** How often a handler was entered. */
  runs(): number
  /** How many effects were committed under a key, this site's own unless named. */
  effects(key?: string): Promise<number>
}

/** Runs the body on a site of its own. */
export async function onSite<Tx extends object>(
  harness: HttpHarness<Tx>,
  routes: readonly Route[],
  options: Options,
  body: (site: Site) => Promise<void>,
): Promise<void> {
  const { mode, caller: scope } = harness
  const faults = planFaults()
  const opened = await harness.open()
  const safe = retrysafe<Tx>({ store: withFaults(opened.store, faults), mode, scope, ...options })
  const handlers = handlersOf(harness)
  const key = randomUUID()
  const covered = harness.mode === 'transaction' || harness.handlers === 'replies'
  try {
    const server = await harness.start({ safe, routes: routes.map(handlers.route) })
    try {
      await body({
        url: server.url,
        faults,
        covered,
        writes: covered ? 'save' : 'complete',
        key,
        send: ({ path = '/orders', ...sending } = {}) => {
          const sent = send(server.url + path, { key, ...sending })
          // A case that fails while a request is under way leaves it to nobody; its own failure is what counts.
          sent.catch(() => undefined)
          return sent
        },
        runs: handlers.runs,
        effects: async (of = key) => (await harness.ledger.read(of)).length,
      })
    } finally {
      faults.heal()
      await server.close()
    }
  } finally {
    await safe.close()
    await opened.close()
  }
}

/** The suite's handlers: each run is counted, writes one effect where the promise can cover it, and answers as the case says. */
function handlersOf<Tx extends object>({ mode, handlers, ledger }: HttpHarness<Tx>) {
  let runs = 0

  async function effect(tx: Tx | undefined, attempt: HttpAttempt<Tx> | undefined): Promise<void> {
    const { key = '', generation = 0 } = attempt ?? {}
    await ledger.write(tx, { key, payload: 'order', generation })
  }

  function route({ method = 'POST', path = '/orders', options = {}, say = orderOf }: Route): HttpRoute<Tx> {
    const base = { method, path, options }
    if (handlers === 'around') return { ...base, kind: 'around', run: (given) => answer(given, say) }
    return { ...base, kind: 'replies', run: (given) => replying(given, say) }
  }

  async function answer(given: Given<Tx>, say: NonNullable<Route['say']>): Promise<Said> {
    runs += 1
    const run = runs
    await effect(mode === 'transaction' ? given.attempt?.tx : undefined, given.attempt)
    return say({ ...given, run })
  }

  async function replying(given: Given<Tx>, say: NonNullable<Route['say']>): Promise<Reply> {
    if (mode === 'transaction') return replyOf(await answer(given, say))
    runs += 1
    const said = await say({ ...given, run: runs })
    const { attempt } = given
    if (attempt === undefined || statusOf(said) >= 400) return replyOf(said)
    return attempt.commit(async (tx) => {
      await effect(tx, attempt)
      return replyOf(said)
    })
  }

  return { route, runs: () => runs }
}

/** A value that no other run has, so that a second run cannot pass for a replay. */
function orderOf(): Said {
  return { do: 'json', status: 201, value: { orderId: randomUUID() } }
}
