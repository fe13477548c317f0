/** What the work may not send in MySQL and MariaDB is found by its first words, however it is written (rule 21). */
import { expect, test } from 'vitest'
import { controlsTransaction } from '../../dist/stores/mysql/control-words.js'

test.each([
  ['COMMIT', 'commit'],
  ['begin work', 'begin work'],
  ['Start Transaction Read Only', 'start transaction'],
  ['rollback', 'rollback'],
  ['rollback and chain', 'rollback and'],
  ['/* to a */ rollback /* to a */', 'rollback'],
  ['# c\n commit', 'commit'],
  ['--\tc\ncommit', 'commit'],
  ['/*M!100100 commit */', 'commit'],
  ['/*! start transaction */', 'start transaction'],
  ['select 1;;commit', 'commit'],
  ["select '\\'; commit", undefined],
  ["select ''';'; commit", 'commit'],
  ['select `a``;` ; commit', 'commit'],
  ['set autocommit=0', 'autocommit'],
  ['set @@autocommit = 1', '@@autocommit'],
  ['set @a = 1, @@session.autocommit = 1', 'autocommit'],
  ['set global transaction read only', 'transaction'],
  ['unlock tables', 'unlock tables'],
  ['xa commit "x"', 'xa commit'],
  ['create or replace table t (a int)', 'create or'],
  ['drop index i on t', 'drop index'],
  ['grant select on t to u', 'grant select'],
  ['flush tables', 'flush tables'],
  ['load index into cache t', 'load index'],
])('%j is refused as %j', (text, words) => {
  expect(controlsTransaction(text)).toBe(words)
})

test.each([
  'rollback to savepoint s',
  'ROLLBACK WORK TO s',
  'release savepoint s',
  'savepoint begin_here',
  'insert into t (`commit`) values ("rollback")',
  "select 'it''s; commit'",
  'select "a\\"; commit"',
  'select 1 /* ; commit */',
  'select 5--1 from commits',
  'create temporary table t (a int)',
  'create or replace temporary table t (a int)',
  'drop temporary table t',
  "load data infile 'x' into table t",
  'set @total = 1',
  "set time_zone = '+00:00'",
  'call settle()',
  'select begin_at, commit_at from start_times',
  'update t set start = 1',
  '',
])('%j is let through', (text) => {
  expect(controlsTransaction(text)).toBeUndefined()
})
