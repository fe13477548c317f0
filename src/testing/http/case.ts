/** A case of the HTTP suite, before it knows which adapter it is to prove. */
import type { Options } from '../../options.js'
import type { SuiteCase } from '../suite.js'
import type { HttpHarness, Said } from './harness.js'
import { onSite, type Route, type Site } from './site.js'

export interface HttpCase {
  readonly rule: number
  readonly name: string
  readonly routes: readonly Route[]
  readonly body: (site: Site) => Promise<void>
  readonly more: More
}

interface More {
  /** Options of the instance. */
  readonly options?: Options
  /** A way to answer that the framework must have, or the kind of handler that the case is about. */
  readonly needs?: Said['do'] | 'around'
}

export function test(
  rule: number,
  name: string,
  routes: readonly Route[],
  body: (site: Site) => Promise<void>,
  more: More = {},
): HttpCase {
  return { rule, name, routes, body, more }
}

/** The case for one adapter; what the framework does not have is its reason to be skipped. */
export function caseFor<Tx extends object>(
  harness: HttpHarness<Tx>,
  { rule, name, routes, body, more }: HttpCase,
): SuiteCase {
  const skip = reasonToSkip(harness, more.needs)
  const run = () => onSite(harness, routes, more.options ?? {}, body)
  return { rule, name, ...(skip !== undefined && { skip }), run }
}

function reasonToSkip<Tx extends object>(
  { handlers, lacks }: HttpHarness<Tx>,
  needs: More['needs'],
): string | undefined {
  if (needs !== 'around') return needs && lacks?.[needs]
  return handlers === 'around' ? undefined : 'a handler that returns replies is mounted for its methods only'
}
