/**
 * Where a message over HTTP/2 is not what one over HTTP/1 is. Node's compatibility layer has the same members, but what carries a
 * message is a stream of its own, a status has no words, and a stream that is destroyed without a reason ends as if it were complete.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'

interface Carried {
  readonly stream?: ServerHttp2Stream
}

/** The stream of a message over HTTP/2; undefined over HTTP/1. */
export function streamOf(message: IncomingMessage | ServerResponse): ServerHttp2Stream | undefined {
  const { stream } = message as Carried
  return typeof stream?.close === 'function' && 'rstCode' in stream ? stream : undefined
}

/** What carries a request and its response, and ends with them: a connection, or a stream of one. */
export function carrierOf(message: IncomingMessage): Socket {
  return (streamOf(message) as Socket | undefined) ?? message.socket
}

/** The words of the status; over HTTP/2 there are none, and Node warns who asks. */
export function wordsOf(res: ServerResponse): string {
  return streamOf(res) === undefined ? res.statusMessage : ''
}

export function setWords(res: ServerResponse, words: string): void {
  if (streamOf(res) === undefined) res.statusMessage = words
}

/** Ends a reply so that its client cannot take it for whole: `destroy` alone tells a client over HTTP/2 that nothing is wrong. */
export function breakCarrier(res: ServerResponse): void {
  streamOf(res)?.close(constants.NGHTTP2_INTERNAL_ERROR)
}

/** Whether Node is ending a carrier by itself, because either side has said its last. */
export function isEnding(carrier: Socket): boolean {
  if ('rstCode' in carrier) return carrier.closed || carrier.writableEnded
  return carrier.readableEnded || carrier.writableEnded
}
