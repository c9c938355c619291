import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { en } from '../src/words/en'
import { ru } from '../src/words/ru'
import { chooseLanguage, count, t } from '../src/words/words'

const tables: Record<string, Record<string, string>> = { en, ru }

it('says everything in every language, with the same blanks', () => {
  const names = Object.keys(en).sort()
  const blanks = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort()
  for (const [language, table] of Object.entries(tables)) {
    assert.deepEqual(Object.keys(table).sort(), names, language)
    for (const name of names) {
      assert.ok(table[name]!.trim(), `${language} ${name} is empty`)
      assert.deepEqual(blanks(table[name]!), blanks(en[name as keyof typeof en]), `${language} ${name}`)
    }
  }
  for (const name of names) if (/[a-z]{3}/i.test(en[name as keyof typeof en].replace(/\{\w+\}/g, '')) && name !== 'title') assert.match(ru[name as keyof typeof ru], /[а-яё]/i, `${name} is not Russian`)
})

it('has no text that nothing says', () => {
  const folder = join(process.cwd(), 'src')
  const source = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && !/words[/\\][\w.]*(en|ru)\.ts$/.test(file))
    .map((file) => readFileSync(join(folder, file), 'utf8'))
    .join('\n')
  for (const name of Object.keys(en)) {
    const said = name.replace(/(One|Few|Many|Other)$/, '')
    assert.ok(source.includes(`'${name}'`) || source.includes(`count('${said}'`), `nothing says ${name}`)
  }
})

it('counts', () => {
  chooseLanguage('en')
  assert.equal(count('queued', 1), '1 message waits.')
  assert.equal(count('queued', 5), '5 messages wait.')
  chooseLanguage('ru')
  assert.deepEqual([1, 2, 5, 21].map((n) => count('queued', n)), ['Ждёт 1 сообщение.', 'Ждут 2 сообщения.', 'Ждут 5 сообщений.', 'Ждёт 21 сообщение.'])
  chooseLanguage('en')
  assert.equal(t('fromDevice', { name: '{name}$&' }), 'From {name}$&')
})
