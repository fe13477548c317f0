/** What a URL names, and what comes of it. */
import type { Store } from '../../index.js'

export interface OpenedStore {
  readonly store: Store<object>
  close(): Promise<void>
}

/** The URL is for the driver; it may hold a password and is never repeated. */
export interface Target {
  readonly url: string
  readonly schema: string | undefined
  readonly prefix: string | undefined
  readonly cwd: string
  /** Whether a store that is not there yet may be made. */
  readonly mayCreate: boolean
}

export function schemeOf(url: string): string {
  const [scheme] = /^[a-z][a-z0-9+.-]*:/i.exec(url) ?? []
  return scheme?.toLowerCase() ?? ''
}
