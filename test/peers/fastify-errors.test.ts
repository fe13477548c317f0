/** Fastify: what fails, where, and what is made of it. */
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { type HttpAttempt, idempotent } from '../../dist/http/fastify.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { gate } from '../http/suite/site.js'
import { type Answer, around, inRoom, modes, random, shown } from './fastify-room.js'

test('an error handler of the application never sees our refusals, and sees what scope throws, once', () => {
  const errors: unknown[] = []
  return inRoom(
    async (app, safe) => {
      app.setErrorHandler((error, _request, answer) => {
        errors.push(error)
        void answer.code(500).send({ hidden: true })
      })
      await app.register(async (scope) => {
        await scope.register(idempotent(safe))
        scope.post('/orders', async () => ({ id: random() }))
      })
      await app.register(async (scope) => {
        await scope.register(
          idempotent(safe, {
            scope: () => {
              throw new Error('no caller')
            },
          }),
        )
        scope.post('/own', async () => ({ id: random() }))
      })
      await app.register(async (scope) => {
        const keep = () => {
          throw new Error('no answer')
        }
        await scope.register(idempotent(safe, { keep }))
        scope.post('/kept', async (_, answer) =>
          answer.header('location', '/1').header('content-encoding', 'identity').send({ id: random() }),
        )
      })
    },
    async ({ post }) => {
      expect((await post('/orders', { key: null })).status).toBe(400)
      expect((await post()).status).toBe(200)
      expect((await post('/orders', { json: 2 })).status).toBe(422)
      expect(errors).toEqual([])
      expect(shown(await post('/own'))).toMatchObject({ status: 500, body: '{"hidden":true}' })
      const kept = await post('/kept', { key: 'k2' })
      expect(shown(kept)).toMatchObject({ status: 500, body: '{"hidden":true}' })
      expect(kept.headers).not.toHaveProperty('location')
      expect(kept.headers).not.toHaveProperty('content-encoding')
      expect(errors.map((error) => (error as Error).message)).toEqual(['no caller', 'no answer'])
    },
  )
})

/** Every way to fail. */
const failures: Record<string, Answer> = {
  'a throw': () => {
    throw new Error('failed')
  },
  'a rejection': async () => {
    throw new Error('failed')
  },
  'a text that is thrown': async () => {
    throw 'failed'
  },
  'an error that is sent': (_, answer) => answer.send(new Error('failed')),
  'a value that has no JSON': async () => ({ id: 1n }),
  'a stream that fails at once': async (_, answer) =>
    answer.send(
      new Readable({
        read() {
          this.destroy(new Error('failed'))
        },
      }),
    ),
  'a hook behind the handler': async (_, answer) => answer.header('x-fail', '1').send({ id: 1 }),
}

for (const [how, answer] of Object.entries(failures)) {
  test(`a failure that an error handler makes a 400 of is not kept, and nor are its writes: ${how}`, () => {
    let runs = 0
    let effects = 0
    const errors: unknown[] = []
    return inRoom(
      async (app, safe) => {
        app.setErrorHandler((error, _request, sent) => {
          errors.push(error)
          void sent.removeHeader('x-fail').code(400).send({ handled: true })
        })
        app.addHook('onSend', async (_request, sent, payload) => {
          if (sent.hasHeader('x-fail')) throw new Error('failed')
          return payload
        })
        await around(app, safe, (request, sent) => {
          runs += 1
          ;(request.idempotency as HttpAttempt<MemoryTx>).tx.defer(() => {
            effects += 1
          })
          return answer(request, sent)
        })
      },
      async ({ post }) => {
        for (const _ of [1, 2])
          expect(shown(await post())).toEqual({ status: 400, body: '{"handled":true}', replayed: false })
        expect({ runs, effects, errors: errors.length }).toEqual({ runs: 2, effects: 0, errors: 2 })
      },
    )
  })
}

test('onResponse hears once of each request, with the status that was sent', () => {
  const heard: number[] = []
  return inRoom(
    async (app, safe) => {
      app.addHook('onResponse', async (_request, answer) => void heard.push(answer.statusCode))
      await around(app, safe, async (_, answer) => answer.code(201).send({ id: random() }))
    },
    async ({ post }) => {
      await post()
      await post()
      await post('/orders', { json: 2 })
      expect(heard).toEqual([201, 201, 422])
    },
  )
})

/** With a body, whose end Node tells as a close, Fastify's timer is off once the body is read. */
const empty = { json: undefined }

test('a handler that takes too long for handlerTimeout has failed', () => {
  let runs = 0
  return inRoom(
    async (app, safe) => {
      await app.register(idempotent(safe))
      app.post('/orders', { handlerTimeout: 500 }, async ({ signal }) => {
        runs += 1
        if (runs === 1) await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return { runs }
      })
    },
    async ({ post }) => {
      expect((await post('/orders', empty)).status).toBe(503)
      expect(shown(await post('/orders', empty))).toEqual({
        status: 200,
        body: '{"runs":2}',
        replayed: false,
      })
    },
  )
})

for (const mode of modes) {
  test(`a request that was answered before its claim came holds no key (${mode})`, () => {
    const real = memory()
    const door = gate()
    const begin: typeof real.transactions.begin = (request) =>
      door.opened.then(() => real.transactions.begin(request))
    const store = {
      ...real,
      claim: (request: Parameters<typeof real.claim>[0]) => door.opened.then(() => real.claim(request)),
      transactions: { ...real.transactions, begin },
    }
    return inRoom(
      async (app, safe) => {
        await app.register(idempotent(safe))
        app.post('/orders', { handlerTimeout: 50 }, async () => ({ id: 1 }))
      },
      async ({ post }) => {
        expect((await post('/orders', empty)).status).toBe(503)
        door.open()
        await expect.poll(async () => (await post('/orders', empty)).status).toBe(200)
      },
      { mode, store },
    )
  })
}
