/**
 * The HTTP suite's harness for NestJS, on Express and on Fastify: mounts abstract routes as controllers, and answers with what their methods
 * return, or through `@Res()`.
 */
import 'reflect-metadata'
import { Readable } from 'node:stream'
import {
  Body,
  Controller,
  Delete,
  Get,
  type INestApplication,
  Module,
  type ModuleMetadata,
  Patch,
  Post,
  Put,
  Req,
  Res,
  StreamableFile,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import type { Response } from 'express'
import type { FastifyReply } from 'fastify'
import { Attempt, type HttpAttempt, IdempotencyModule, Idempotent } from '../../dist/http/nest.js'
import type { Retrysafe } from '../../dist/index.js'
import type { HttpRoute, HttpSite, Said } from '../../dist/testing/index.js'
import { answer as answerExpress } from '../suites/express-site.js'
import { answer as answerFastify } from './fastify-site.js'

export type PlatformName = 'express' | 'fastify'
/** How methods answer: by what they return, or through `@Res()`. */
export type Answering = 'returns' | 'writes'

export function caller(request: { headers: { authorization?: string } }): string {
  return request.headers.authorization ?? ''
}

export interface NestServer {
  readonly app: INestApplication
  readonly url: string
  close(): Promise<void>
}

export interface NestSetup {
  readonly platform: PlatformName
  readonly rawBody?: boolean
  readonly bodyParser?: boolean
  prepare?(app: INestApplication): unknown
}

/** Starts an application of one root module. */
export async function startNest(
  metadata: ModuleMetadata,
  { platform, rawBody = true, bodyParser = true, prepare }: NestSetup,
): Promise<NestServer> {
  class Root {}
  Module(metadata)(Root)
  const options = {
    rawBody,
    bodyParser,
    logger: false as const,
    forceCloseConnections: true,
    abortOnError: false,
  }
  const app = await create(Root, platform, options)
  await prepare?.(app)
  await app.listen(0, '127.0.0.1')
  return { app, url: await app.getUrl(), close: () => app.close() }
}

type Created = Parameters<typeof NestFactory.create>[2] & object

async function create(
  root: new () => object,
  platform: PlatformName,
  options: Created,
): Promise<INestApplication> {
  if (platform === 'express')
    return NestFactory.create<NestExpressApplication>(root, new ExpressAdapter(), options)
  const adapter = new FastifyAdapter({ forceCloseConnections: true })
  // What no parser takes reaches the handler unread, as on Express.
  adapter.getInstance().addContentTypeParser('*', (_request, _payload, done) => done(null))
  return NestFactory.create<NestFastifyApplication>(root, adapter, options)
}

/** Starts an application with the routes. */
export function starter(setup: NestSetup, answering: Answering) {
  return async <Tx extends object>({ safe, routes }: HttpSite<Tx>) =>
    startNest(
      {
        imports: [IdempotencyModule.forRoot(safe as unknown as Retrysafe<object>)],
        controllers: routes.map((route) => controllerOf(route, setup.platform, answering)),
      },
      setup,
    )
}

const methods = { GET: Get, POST: Post, PUT: Put, PATCH: Patch, DELETE: Delete }

function controllerOf<Tx>(route: HttpRoute<Tx>, platform: PlatformName, answering: Answering) {
  class Routes {
    async replies(attempt: HttpAttempt<Tx>, body: unknown) {
      if (route.kind !== 'replies') throw new Error('of the other kind')
      return route.run({ attempt, body })
    }
    async answers(request: { idempotency?: HttpAttempt<Tx> }, body: unknown, response: never) {
      if (route.kind !== 'around') throw new Error('of the other kind')
      const said = await route.run({ attempt: request.idempotency, body })
      if (answering === 'returns') return returned(said, response)
      if (platform === 'express') answerExpress(response, said)
      else answerFastify(response, said)
      return undefined
    }
  }
  const name = route.kind === 'replies' ? 'replies' : 'answers'
  const method = methods[route.method as keyof typeof methods]
  const descriptor = descriptorOf(Routes.prototype, name)
  if (name === 'replies') Attempt()(Routes.prototype, name, 0)
  else {
    Req()(Routes.prototype, name, 0)
    Res(answering === 'returns' ? { passthrough: true } : undefined)(Routes.prototype, name, 2)
  }
  Body()(Routes.prototype, name, 1)
  method(route.path)(Routes.prototype, name, descriptor)
  Idempotent(route.options)(Routes.prototype, name, descriptor)
  Controller()(Routes)
  return Routes
}

export function descriptorOf(prototype: object, name: string): TypedPropertyDescriptor<unknown> {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name)
  if (descriptor === undefined) throw new Error(`no method ${name}`)
  return descriptor
}

/** Status and headers are set on the response that Nest goes on to answer with. */
function returned(said: Said, response: Response | FastifyReply): unknown {
  if ('status' in said) response.status(said.status)
  const headers = Object.entries('headers' in said ? (said.headers ?? {}) : {})
  for (const [name, value] of headers) response.header(name, value)
  if (said.do === 'redirect') response.header('location', said.location)
  switch (said.do) {
    case 'json':
      return said.value
    case 'text':
      return said.text
    case 'bytes':
      return new StreamableFile(said.bytes)
    case 'stream':
      return new StreamableFile(Readable.from(said.pieces))
    case 'writes':
      throw new Error('not by what is returned')
    case 'empty':
    case 'redirect':
      return undefined
    case 'throw':
      throw said.error
    default:
      return said satisfies never
  }
}
