/**
 * Checked by the compiler alone: what is restated of Express in `src/http/express-types.ts` fits the real types, and handlers are typed
 * from the store.
 */
import express, { type Request } from 'express'
import { retrysafe } from 'retrysafe'
import { type ExpressRequest, idempotent, rawBody, serve } from 'retrysafe/express'
import { memory } from 'retrysafe/memory'
import { policy } from '../../dist/http/policy.js'
import { reply } from '../../dist/http/reply.js'
import type { MemoryTx } from '../../dist/stores/memory.js'

declare global {
  namespace Express {
    interface Request {
      user?: { id: string }
    }
  }
}

const safe = retrysafe({
  store: memory(),
  mode: 'transaction',
  scope: (req: Request) => req.get('authorization') ?? '',
})
const app = express()

app.use(express.json({ verify: rawBody }))
app.use('/.well-known/retrysafe', serve(policy(safe)))

app.post(
  '/orders/:id',
  idempotent(safe, {}, async ({ tx, body, req, key }) => {
    const typed: MemoryTx = tx
    typed.defer(() => undefined)
    return reply(201, { total: body.totalCents, id: req.params.id, user: req.user?.id, key })
  }),
)
app.post(
  '/own',
  idempotent(safe, { scope: (req: Request) => req.ip ?? '' }, ({ req }) => reply(200, req.hostname)),
)
app.post(
  '/payments',
  idempotent(safe, { mode: 'lease' }, async ({ commit }) =>
    commit((tx) => reply(201, { tx: tx.defer.length })),
  ),
)
app.post(
  '/legacy',
  idempotent(safe, { mode: 'lease', scope: (req) => req.originalUrl, required: false }),
  (req, res) => {
    res.json({ key: req.idempotency?.key })
  },
)
app.use(idempotent(safe))
app
  .route('/routed')
  .post(
    idempotent(safe, { fingerprint: (req: Request) => req.ip }, ({ signal }) =>
      reply(signal.aborted ? 503 : 204),
    ),
  )
const router = express.Router()
router.use(idempotent(safe, { mode: 'lease' }))

// @ts-expect-error a handler must return a reply
const notAReply = () => idempotent(safe, {}, async () => ({ status: 200 }))
// @ts-expect-error lease mode has no transaction to write through
const noTx = () => idempotent(safe, { mode: 'lease' }, async ({ tx }) => reply(200, tx))
// @ts-expect-error transaction mode commits by itself
const noCommit = () => idempotent(safe, { mode: 'transaction' }, (own) => own.commit(() => reply(200)))
// @ts-expect-error there is no such option
const noOption = () => idempotent(safe, { retainSeconds: 1 })

export const fits: (req: Request) => ExpressRequest = (req) => req
export const refused = [notAReply, noTx, noCommit, noOption]
