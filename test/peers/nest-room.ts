/** A Nest application on a port of its own, what its tests send to it, and decorators applied as functions. */
import { Body, Controller, type INestApplication, type ModuleMetadata, Post, Req, Res } from '@nestjs/common'
import type { Response } from 'express'
import type { FastifyReply } from 'fastify'
import { IdempotencyModule, Idempotent, type NestDecorator } from '../../dist/http/nest.js'
import { type Retrysafe, type RetrysafeOptions, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { type Got, type Sending, send } from '../../dist/testing/http/wire.js'
import { descriptorOf, type PlatformName, startNest } from './nest-site.js'

export type Mode = 'transaction' | 'lease'
export const modes: readonly Mode[] = ['transaction', 'lease']
export const platforms: readonly PlatformName[] = ['express', 'fastify']
export const everywhere = platforms.flatMap((platform) => modes.map((mode) => ({ platform, mode })))

export interface Room {
  readonly app: INestApplication
  readonly safe: Retrysafe<MemoryTx>
  readonly url: string
  post(path?: string, sending?: Sending): Promise<Got>
}

export interface RoomSetup extends Partial<RetrysafeOptions<MemoryTx>> {
  readonly platform?: PlatformName
  readonly rawBody?: boolean
  readonly metadata: ModuleMetadata
  readonly withModule?: boolean
  prepare?(app: INestApplication): unknown
}

/** Builds an application, and lets the body send to it. */
export async function inNest(
  { platform = 'express', rawBody = true, metadata, prepare, withModule = true, ...options }: RoomSetup,
  body: (room: Room) => Promise<void>,
): Promise<void> {
  const safe = retrysafe<MemoryTx>({ store: memory(), scope: 's', mode: 'transaction', ...options })
  const imports = [...(withModule ? [IdempotencyModule.forRoot(safe)] : []), ...(metadata.imports ?? [])]
  try {
    const server = await startNest(
      { ...metadata, imports },
      { platform, rawBody, ...(prepare !== undefined && { prepare }) },
    )
    try {
      await body({
        app: server.app,
        safe,
        url: server.url,
        post: (path = '/orders', sending = {}) =>
          send(server.url + path, {
            key: 'k',
            ...(sending.body === undefined && { json: { total: 1 } }),
            ...sending,
          }),
      })
    } finally {
      await server.close()
    }
  } finally {
    await safe.close()
  }
}

type Decorator = MethodDecorator | NestDecorator

/** Applies decorators of a method as TypeScript would: the last one first. */
export function method(
  controller: { readonly prototype: object },
  name: string,
  ...decorators: readonly Decorator[]
): void {
  const { prototype } = controller
  const descriptor = descriptorOf(prototype, name)
  for (const decorate of [...decorators].reverse()) {
    const replaced = (decorate as MethodDecorator)(prototype, name, descriptor)
    Object.defineProperty(prototype, name, replaced ?? descriptor)
  }
}

export const shown = ({ status, body, replayed }: Got) => ({ status, body: body.toString(), replayed })

export type AnyResponse = Response & FastifyReply

/** A controller of one method, `POST /orders`. */
export function orders(
  run: (body: unknown, request: object, response: AnyResponse) => unknown,
  ...decorators: (MethodDecorator | NestDecorator)[]
) {
  class Orders {
    create(body: unknown, request: object, response: AnyResponse) {
      return run(body, request, response)
    }
  }
  Body()(Orders.prototype, 'create', 0)
  Req()(Orders.prototype, 'create', 1)
  Res({ passthrough: true })(Orders.prototype, 'create', 2)
  method(Orders, 'create', Post('orders'), Idempotent(), ...decorators)
  Controller()(Orders)
  return Orders
}

/** A handler that is given the number of its run. */
export function counted<Answer>(answer: (run: number) => Answer) {
  let runs = 0
  const run = () => {
    runs += 1
    return answer(runs)
  }
  return { run, runs: () => runs }
}
