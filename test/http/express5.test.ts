import express from 'express'
import { answerSuite } from './suite/answers.js'
import { bodySuite } from './suite/bodies.js'
import { keySuite } from './suite/keys.js'

keySuite(express)
bodySuite(express)
answerSuite(express)
