/**
 * What differs between the two platforms of Nest: how a request is read, and by which means ours is answered.
 */
import type { ServerResponse } from 'node:http'
import type { HttpCall } from './exchange.js'
import { readExpressBody } from './express-body.js'
import { reasonOf } from './express-errors.js'
import { readFastifyBody } from './fastify-body.js'
import { sendThrough, showHeaders } from './fastify-reply.js'
import type { FastifyReply, FastifyRequest } from './fastify-types.js'
import { ignoreWrites } from './nest-observable.js'
import type { NestContext } from './nest-types.js'
import { sendReply } from './node.js'
import type { Reply } from './reply.js'

export interface Platform {
  readonly raw: ServerResponse
  readonly call: HttpCall
  send(reply: Reply): void
  /** Tells the framework that an answer is not its to send. */
  hijack(): void
  /** Hands an error to the filters once the handler has been left. */
  giveError(error: unknown): void
  shield(): void
  isClientGone(): boolean
}

export function platformOf(context: NestContext): Platform {
  const http = context.switchToHttp()
  const request = http.getRequest()
  const response = http.getResponse()
  if ('hijack' in response) return ofFastify(request as FastifyRequest, response)
  if ('raw' in request) throw new TypeError('A request of Fastify came with another response')
  const next = http.getNext()
  return {
    raw: response,
    call: {
      method: request.method ?? '',
      target: request.originalUrl,
      rawHeaders: request.rawHeaders,
      request,
      readBody: (limitBytes) => readExpressBody(request, limitBytes),
    },
    send: (reply) => sendReply(response, reply),
    hijack: () => undefined,
    giveError: (error) => next(reasonOf(error)),
    shield: () => ignoreWrites(response),
    isClientGone: () => request.socket.destroyed,
  }
}

function ofFastify(request: FastifyRequest, reply: FastifyReply): Platform {
  const raw = reply.raw as ServerResponse
  const back = showHeaders(reply)
  return {
    raw,
    call: {
      method: request.method,
      target: request.originalUrl,
      rawHeaders: request.raw.rawHeaders,
      request,
      readBody: (limitBytes) => readFastifyBody(request, limitBytes),
    },
    send: (given) => sendThrough(reply, given),
    hijack: () => reply.hijack(),
    giveError: (error) => back(reasonOf(error)),
    shield: () => {
      ignoreWrites(raw)
      // What is sent after all is logged as a mistake.
      Object.assign(reply, { send: () => reply })
    },
    isClientGone: () => request.raw.socket.destroyed,
  }
}
