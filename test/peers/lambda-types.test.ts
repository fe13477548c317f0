/** Our restatement of API Gateway's events and results, held against `@types/aws-lambda`: drift fails this build, not the user's. */
import type {
  ALBEvent,
  ALBResult,
  APIGatewayProxyEvent,
  APIGatewayProxyEventV2,
  APIGatewayProxyEventV2WithJWTAuthorizer,
  APIGatewayProxyHandler,
  APIGatewayProxyHandlerV2,
  APIGatewayProxyResult,
  APIGatewayProxyResultV2,
  Context,
  LambdaFunctionURLEvent,
} from 'aws-lambda'
import { expectTypeOf, test } from 'vitest'
import {
  idempotent,
  type LambdaContext,
  type LambdaEvent,
  type LambdaEventV1,
  type LambdaEventV2,
  type LambdaResult,
} from '../../dist/http/lambda.js'
import { reply, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'

const safe = retrysafe({ store: memory(), mode: 'transaction', scope: 's' })

test('events of every kind are what we ask for', () => {
  expectTypeOf<APIGatewayProxyEvent>().toExtend<LambdaEventV1>()
  expectTypeOf<ALBEvent>().toExtend<LambdaEventV1>()
  expectTypeOf<APIGatewayProxyEventV2>().toExtend<LambdaEventV2>()
  expectTypeOf<APIGatewayProxyEventV2WithJWTAuthorizer>().toExtend<LambdaEventV2>()
  expectTypeOf<LambdaFunctionURLEvent>().toExtend<LambdaEventV2>()
  expectTypeOf<Context>().toExtend<LambdaContext>()
})

test('our result is one of each format', () => {
  expectTypeOf<LambdaResult>().toExtend<APIGatewayProxyResult>()
  expectTypeOf<LambdaResult>().toExtend<APIGatewayProxyResultV2>()
  expectTypeOf<LambdaResult>().toExtend<ALBResult>()
})

test('a handler that returns replies is a handler of Lambda, typed for event and mode', () => {
  const byEvent: APIGatewayProxyHandlerV2 = idempotent(
    safe,
    { mode: 'transaction', scope: (event: APIGatewayProxyEventV2) => event.requestContext.accountId },
    ({ event, tx }) => {
      expectTypeOf(tx).toEqualTypeOf<MemoryTx>()
      expectTypeOf(event).toEqualTypeOf<APIGatewayProxyEventV2>()
      return reply(200)
    },
  )
  const plain: APIGatewayProxyHandler = idempotent(safe, {}, ({ body }) => reply(200, body))
  expectTypeOf([byEvent, plain]).not.toBeAny()
})

test('a handler that exists keeps its type', () => {
  const own = async (_event: APIGatewayProxyEvent, _context: Context): Promise<APIGatewayProxyResult> => ({
    statusCode: 200,
    body: '',
  })
  const v1: APIGatewayProxyHandler = idempotent(safe)(own)
  const simple: APIGatewayProxyHandlerV2 = idempotent(safe)(
    async (_event: APIGatewayProxyEventV2) => 'a text',
  )
  const both = idempotent(safe)(async (event: LambdaEvent) => ({ statusCode: 200, body: String(event.body) }))
  expectTypeOf([v1, simple]).not.toBeAny()
  expectTypeOf(both).parameter(0).toEqualTypeOf<LambdaEvent>()
})
