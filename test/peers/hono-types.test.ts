/** Our restatement of Hono's types, held against the real ones: drift fails this build, not the user's. */
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { expectTypeOf, test } from 'vitest'
import { type HonoContext, type HonoVariables, idempotent } from '../../dist/http/hono.js'
import { reply, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'

type Env = { Variables: HonoVariables<MemoryTx> & { readonly user: { readonly id: string } } }

const safe = retrysafe({ store: memory(), mode: 'transaction', scope: 's' })

test('a context of Hono is what we ask for, whatever its environment', () => {
  expectTypeOf<Context>().toExtend<HonoContext>()
  expectTypeOf<Context<Env>>().toExtend<HonoContext>()
  expectTypeOf<Context<Env, '/orders/:id'>>().toExtend<HonoContext>()
})

test('the middleware is one of Hono, in every place', () => {
  const app = new Hono<Env>()
  expectTypeOf(idempotent(safe)).toExtend<MiddlewareHandler>()
  app.use(idempotent(safe))
  app.use('/orders/*', idempotent(safe, { mode: 'lease' }))
  app.post('/orders', idempotent(safe), (c) => {
    expectTypeOf(c.get('idempotency')?.tx).toEqualTypeOf<MemoryTx | undefined>()
    return c.json({ id: 1 })
  })
  app.on(['POST', 'PUT'], '/all', idempotent(safe), (c) => c.text('ok'))
})

test('a handler is typed for its mode, and callbacks see the context', () => {
  const app = new Hono<Env>()
  app.post(
    '/orders/:id',
    idempotent(safe, { mode: 'transaction', scope: (c: Context<Env>) => c.get('user').id }, ({ tx, c }) => {
      expectTypeOf(tx).toEqualTypeOf<MemoryTx>()
      expectTypeOf(c.get('user').id).toEqualTypeOf<string>()
      return c.json({ id: c.req.param('id') })
    }),
    idempotent(safe, { mode: 'lease' }, async ({ commit, c }) =>
      commit(() => reply(201, c.req.header('x-own'))),
    ),
  )
  expectTypeOf(app).not.toBeAny()
})

test('a handler needs no annotation to answer as Hono does', () => {
  const app = new Hono<Env>()
  app.post(
    '/json',
    idempotent(safe, { scope: (c) => c.var.user.id }, ({ c, body }) => c.json(body, 201)),
  )
  app.post(
    '/text',
    idempotent(safe, {}, async ({ c }) => c.text(await c.req.text())),
  )
  app.post(
    '/more',
    idempotent(safe, {}, ({ c }) => c.redirect(c.req.param('id'), 303)),
  )
  expectTypeOf(app).not.toBeAny()
})

test('what is no context does not compile', () => {
  // @ts-expect-error the request of another framework
  const never = () => idempotent(safe, { scope: (c: Request) => c.url })
  expectTypeOf(never).toBeFunction()
})
