/**
 * What is used of API Gateway's events and results, restated; `test/peers/lambda-types.test.ts` checks it against `@types/aws-lambda`.
 */

type Values<Value> = Readonly<Record<string, Value | undefined>> | null | undefined

/** Payload format 1.0: REST APIs, HTTP APIs that are set to it, and load balancers. */
export interface LambdaEventV1 {
  readonly httpMethod: string
  readonly path: string
  readonly headers?: Values<string>
  readonly multiValueHeaders?: Values<readonly string[]>
  readonly queryStringParameters?: Values<string>
  readonly multiValueQueryStringParameters?: Values<readonly string[]>
  readonly body: string | null
  readonly isBase64Encoded: boolean
  readonly requestContext: object
}

/** Payload format 2.0: HTTP APIs and function URLs. */
export interface LambdaEventV2 {
  readonly version: string
  readonly rawPath: string
  readonly rawQueryString: string
  readonly headers: Values<string>
  readonly body?: string | null | undefined
  readonly isBase64Encoded: boolean
  readonly requestContext: { readonly http: { readonly method: string } }
}

export type LambdaEvent = LambdaEventV1 | LambdaEventV2

/** What is used of the second argument that Lambda gives. */
export interface LambdaContext {
  getRemainingTimeInMillis(): number
}

/** A result that both formats take: headers in lists where the event had them, cookies apart in format 2.0. */
export interface LambdaResult {
  statusCode: number
  headers: Record<string, string>
  multiValueHeaders?: Record<string, string[]>
  cookies?: string[]
  body: string
  isBase64Encoded: boolean
}
