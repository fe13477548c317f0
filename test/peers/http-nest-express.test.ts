import { nestSuites } from './nest-suites.js'

nestSuites('express')
