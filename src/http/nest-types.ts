/**
 * What is used of NestJS 11 and of the Observables it works with, restated; `test/peers/nest-types.test.ts` checks it against the real types.
 */
import type { ServerResponse } from 'node:http'
import type { Retrysafe } from '../retrysafe.js'
import type { ExpressNext, ExpressRequest, RequestExtras } from './express-types.js'
import type { FastifyReply, FastifyRequest } from './fastify-types.js'
import type { Body } from './options.js'

export interface NestSubscriber {
  readonly closed: boolean
  next(value: unknown): void
  error(error: unknown): void
  complete(): void
}

type Observer = Pick<NestSubscriber, 'next' | 'error' | 'complete'>

/** An Observable, as far as one is watched. */
export interface NestObservable {
  subscribe(observer: Observer): { unsubscribe(): void }
}

/** The class of an Observable: where one is needed, it is made of the class of the one that is given. */
export type ObservableClass<Observable> = new (
  subscribe: (subscriber: NestSubscriber) => () => void,
) => Observable

/** What runs the handler, and the interceptors before it. */
export interface NestNext<Observable extends NestObservable = NestObservable> {
  handle(): Observable
}

/** A request of either platform. */
export type NestRequest = (ExpressRequest & RequestExtras) | FastifyRequest
/** A response of either platform. */
export type NestResponse = ServerResponse | FastifyReply

/** What an interceptor is told about where it stands. */
export interface NestContext {
  getType(): string
  getClass(): object
  getHandler(): object
  switchToHttp(): { getRequest(): NestRequest; getResponse(): NestResponse; getNext(): ExpressNext }
}

/** A class, whatever it is made with. */
export type NestClass = abstract new (...given: never[]) => unknown

/** For methods of controllers, and for controllers. */
export interface NestDecorator {
  (controller: NestClass): void
  <Method>(controller: object, name: string | symbol, method: TypedPropertyDescriptor<Method>): void
}

export type NestParameterDecorator = (
  controller: object,
  name: string | symbol | undefined,
  index: number,
) => void

/** What Nest and its decorators tell each other by; `reflect-metadata`, which Nest needs, adds it. */
export interface Metadata {
  getMetadata(key: string, target: object, name?: string | symbol): unknown
  defineMetadata(key: string, value: unknown, target: object, name?: string | symbol): void
}

/** What a module is made of while the application starts. */
export interface NestDynamicModule {
  readonly module: new () => object
  readonly global: true
  readonly imports?: Body[]
  readonly providers: Body[]
  readonly exports: symbol[]
}

/** For `forRootAsync`. */
export interface NestModuleOptions {
  /** Modules whose providers are injected. */
  readonly imports?: readonly unknown[]
  /** Tokens of what `useFactory` is called with, in order. */
  readonly inject?: readonly unknown[]
  readonly useFactory: (...injected: Body[]) => Retrysafe<Body> | Promise<Retrysafe<Body>>
}
