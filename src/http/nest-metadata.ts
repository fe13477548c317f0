/**
 * What decorators write down, and where Nest's own look for it: by names, so that nothing of Nest is imported.
 */
import { fail } from '../errors.js'
import type { Metadata, NestClass, NestContext, NestParameterDecorator } from './nest-types.js'
import type { HttpOptions } from './options.js'

// Nest's names.
const interceptorsKey = '__interceptors__'
const argumentsKey = '__routeArguments__'
const customArgument = '__customRouteArgs__'
const injectedKey = 'self:paramtypes'

const optionsKey = 'retrysafe:options'
const attemptKey = 'retrysafe:attempt'

function metadata(): Metadata {
  if ('defineMetadata' in Reflect) return Reflect as unknown as Metadata
  throw fail('OPTION_INVALID', {
    detail: 'load @nestjs/common, which brings reflect-metadata, before a decorator is used',
  })
}

/** Says which provider the first parameter of a class's constructor is. */
export function inject(target: NestClass, token: symbol): void {
  metadata().defineMetadata(injectedKey, [{ index: 0, param: token }], target)
}

/** Puts options and an interceptor on a method or a controller. */
export function mark(target: object, options: HttpOptions<never>, interceptor: NestClass): void {
  const { getMetadata, defineMetadata } = metadata()
  const others = (getMetadata(interceptorsKey, target) ?? []) as unknown[]
  defineMetadata(interceptorsKey, [...others, interceptor], target)
  defineMetadata(optionsKey, options, target)
}

/** The options of the method, over those of its controller; undefined where neither is decorated. */
export function optionsFor(context: NestContext): HttpOptions<never> | undefined {
  const [ofMethod, ofController] = [context.getHandler(), context.getClass()].map(
    (target) => metadata().getMetadata(optionsKey, target) as HttpOptions<never> | undefined,
  )
  return (ofMethod ?? ofController) && { ...ofController, ...ofMethod }
}

/** A parameter that is given what `read` gives. */
export function parameter(read: (context: NestContext) => unknown): NestParameterDecorator {
  return (prototype, name, index) => {
    const { getMetadata, defineMetadata } = metadata()
    const controller = prototype.constructor
    if (name === undefined)
      throw fail('OPTION_INVALID', { detail: '@Attempt() stands at a parameter of a method' })
    const others = getMetadata(argumentsKey, controller, name) as object | undefined
    const factory = (_data: unknown, context: NestContext) => read(context)
    const own = {
      [`${attemptKey}${customArgument}:${index}`]: { index, factory, data: undefined, pipes: [] },
    }
    defineMetadata(argumentsKey, { ...others, ...own }, controller, name)
    defineMetadata(attemptKey, [...askingIn(controller), name], controller)
  }
}

/** Whether the method asks for the attempt. */
export function asksForAttempt(context: NestContext): boolean {
  const controller = context.getClass() as { readonly prototype: object }
  const handler = context.getHandler()
  return askingIn(controller).some((name) => Reflect.get(controller.prototype, name) === handler)
}

function askingIn(controller: object): readonly (string | symbol)[] {
  return (metadata().getMetadata(attemptKey, controller) ?? []) as (string | symbol)[]
}
