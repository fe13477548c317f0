import { nestSuites } from './nest-suites.js'

nestSuites('fastify')
