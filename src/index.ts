/**
 * retrysafe: effects commit exactly once; attempts are at least once.
 *
 * The public face, by name. Stores and adapters have entry points of their own: `retrysafe/postgres`, `retrysafe/express`, …
 */
export type { Answer, Attempt, LeaseAttempt, TransactionAttempt } from './attempt.js'
export type { Clock, Random } from './clock.js'
export type { SurfaceOptions } from './core.js'
export { type ErrorCode, errorTable, isRetrysafeError, type RetrysafeError } from './errors.js'
export type { EventMap, EventName, IntentEvent } from './events.js'
export { corsAllowedHeaders, corsExposedHeaders } from './http/headers.js'
export { type PolicyDocument, type PolicyHandler, policy } from './http/policy.js'
export { type Reply, type ReplyHeaders, reply } from './http/reply.js'
export type { Intent } from './intent.js'
export { drawKey } from './key.js'
export type { Operator, RecordName, RecordView, Resolution } from './operator.js'
export type { KeepContext, Mode, Options, ReplayContext } from './options.js'
export type { Outcome, StoredFailure, StoredReply } from './outcome.js'
export { type Retrysafe, type RetrysafeOptions, retrysafe } from './retrysafe.js'
export type { Finding, Inspecting, RecordState, Store } from './store.js'
