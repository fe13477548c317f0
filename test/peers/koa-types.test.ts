/** Our restatement of Koa's types, held against the real ones: drift fails this build, not the user's. */
import { Router } from '@koa/router'
import Koa, { type Context } from 'koa'
import { expectTypeOf, test } from 'vitest'
import { idempotent, type KoaContext } from '../../dist/http/koa.js'
import { reply, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'

const safe = retrysafe({
  store: memory(),
  mode: 'transaction',
  scope: (ctx: Context) => ctx.get('authorization'),
})

test("Koa's context fits what is used of it", () => {
  expectTypeOf<Context>().toExtend<KoaContext>()
})

test('middleware fits where it goes', () => {
  const app = new Koa()
  const router = new Router({ prefix: '/v1' })
  app.use(idempotent(safe))
  router.use(idempotent(safe, { mode: 'lease' }))
  router.post(
    '/orders/:id',
    idempotent(safe, {}, ({ tx, body, ctx, key }) => {
      expectTypeOf(tx).toEqualTypeOf<MemoryTx>()
      return reply(201, { total: body.totalCents, key, at: ctx.originalUrl })
    }),
  )
  router.post(
    '/own',
    idempotent(safe, { scope: (ctx: Context) => ctx.ip }, ({ ctx }) => reply(200, ctx.hostname)),
  )
  router.post(
    '/payments',
    idempotent(safe, { mode: 'lease' }, ({ commit }) => commit(() => reply(201))),
  )
  router.post('/legacy', idempotent(safe, { required: false }), async (ctx: Context) => {
    ctx.body = ctx.state.idempotency?.key
  })
  app.use(router.routes())
})

test('what does not fit does not compile', () => {
  // @ts-expect-error a handler must return a reply
  const notAReply = () => idempotent(safe, {}, async () => ({ status: 200 }))
  // @ts-expect-error lease mode has no transaction to write through
  const noTx = () => idempotent(safe, { mode: 'lease' }, async ({ tx }) => reply(200, tx))
  // @ts-expect-error transaction mode commits by itself
  const noCommit = () => idempotent(safe, { mode: 'transaction' }, (own) => own.commit(() => reply(200)))
  // @ts-expect-error there is no such option
  const noOption = () => idempotent(safe, { retainSeconds: 1 })
  expectTypeOf([notAReply, noTx, noCommit, noOption]).toBeArray()
})
