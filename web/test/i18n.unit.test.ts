import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import * as enAdmin from '../src/i18n/en/admin'
import * as enConnect from '../src/i18n/en/connect'
import * as enNotification from '../src/i18n/en/notification'
import * as enPage from '../src/i18n/en/page'
import { chooseLanguage, count, t } from '../src/i18n/i18n'
import * as ruAdmin from '../src/i18n/ru/admin'
import * as ruConnect from '../src/i18n/ru/connect'
import * as ruNotification from '../src/i18n/ru/notification'
import * as ruPage from '../src/i18n/ru/page'
import type { Plural } from '../src/i18n/template'

type Table = Record<string, string | Plural>

const en: Table = { ...enPage.page, ...enConnect.connect, ...enAdmin.admin, ...enNotification.notification }
const ru: Table = { ...ruPage.page, ...ruConnect.connect, ...ruAdmin.admin, ...ruNotification.notification }

const forms = (text: string | Plural): Record<string, string> => (typeof text === 'string' ? { other: text } : { ...text })
const placeholders = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort()

it('has every text in both languages, with the same placeholders', () => {
  assert.deepEqual(Object.keys(ru).sort(), Object.keys(en).sort())
  for (const key of Object.keys(en)) {
    assert.equal(typeof ru[key], typeof en[key], key)
    const expected = placeholders(forms(en[key]!).other!)
    for (const text of [...Object.values(forms(en[key]!)), ...Object.values(forms(ru[key]!))]) {
      assert.ok(text.trim(), `${key} is empty`)
      assert.deepEqual(placeholders(text), expected, `${key}: ${text}`)
    }
    if (key === 'title' || !/[a-z]{3}/i.test(forms(en[key]!).other!.replace(/\{\w+\}/g, ''))) continue
    for (const text of Object.values(forms(ru[key]!))) assert.match(text, /[а-яё]/i, `${key} is not in Russian`)
  }
})

it('has exactly the plural forms that each language uses', () => {
  for (const [language, table] of Object.entries({ en, ru })) {
    const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories.toSorted()
    for (const [key, text] of Object.entries(table)) if (typeof text !== 'string') assert.deepEqual(Object.keys(text).sort(), categories, `${language} ${key}`)
  }
})

it('has no key in two tables', () => {
  const keys = [enPage.page, enConnect.connect, enAdmin.admin, enNotification.notification].flatMap((table) => Object.keys(table))
  assert.deepEqual(keys.filter((key, i) => keys.indexOf(key) !== i), [])
})

it('has no unused text', () => {
  const folder = join(process.cwd(), 'src')
  const source = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && !/i18n[/\\](en|ru)[/\\]/.test(file))
    .map((file) => readFileSync(join(folder, file), 'utf8'))
    .join('\n')
  for (const key of Object.keys(en)) assert.ok(source.includes(`'${key}'`) || source.includes(`.${key},`), `${key} is unused`)
})

it('chooses the plural form and fills in placeholders', () => {
  chooseLanguage('en')
  assert.equal(count('queued', 1), '1 message is waiting.')
  assert.equal(count('queued', 5), '5 messages are waiting.')
  chooseLanguage('ru')
  assert.deepEqual([1, 2, 5, 21].map((n) => count('queued', n)), ['Ждёт 1 сообщение.', 'Ждут 2 сообщения.', 'Ждут 5 сообщений.', 'Ждёт 21 сообщение.'])
  chooseLanguage('en')
  assert.equal(t('fromDevice', { name: '{name}$&' }), 'From {name}$&')
})
