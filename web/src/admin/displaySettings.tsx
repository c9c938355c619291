import { chooseTheme, theme, themes, type Theme } from '../view/theme'
import { chooseLanguage, language, languages, t, type Language } from '../i18n/i18n'
import { access, logout } from './state'

const themeWords = { auto: 'themeAuto', light: 'themeLight', dark: 'themeDark' } as const

/** Choices are how the page is shown, and the way out. */
export function DisplaySettings() {
  return (
    <div class="own-choices">
      <select class="small" aria-label={t('language')} value={language.value} onChange={(e) => chooseLanguage(e.currentTarget.value as Language)}>
        {Object.entries(languages).map(([tag, own]) => <option key={tag} value={tag} lang={tag}>{own}</option>)}
      </select>
      <select class="small" aria-label={t('theme')} value={theme.value} onChange={(e) => chooseTheme(e.currentTarget.value as Theme)}>
        {themes.map((one) => <option key={one} value={one}>{t(themeWords[one])}</option>)}
      </select>
      {access.value?.access === 'session' && <button type="button" class="small" onClick={() => void logout()}>{t('adminLogout')}</button>}
    </div>
  )
}
