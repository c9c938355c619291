import assert from 'node:assert/strict'
import { it } from 'node:test'
import { CallError, FrameError, LinkLostError } from '@hermes-mobile/sdk'
import { errorText } from '../src/view/errorText'
import { chooseLanguage } from '../src/i18n/i18n'

it("shows a call's error as it came, and its own errors in the user's language", () => {
  for (const language of ['en', 'ru'] as const) {
    chooseLanguage(language)
    for (const code of ['unavailable', 'refused', 'not_found', 'bad_params', 'agent_away', 'timeout', 'too_many', 'internal']) assert.equal(errorText(new CallError(code, 'the title is taken')), 'the title is taken', code)
  }
  assert.match(errorText(new LinkLostError()), /Связь/)
  assert.match(errorText(new DOMException('signal timed out', 'TimeoutError')), /вовремя/)
  assert.match(errorText(new FrameError('internal', 'x')), /Сервер/)
  assert.match(errorText(new FrameError('no_space', 'x')), /нет места/)
  chooseLanguage('en')
})
