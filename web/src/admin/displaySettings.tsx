import { chooseTheme, theme, themes, type Theme } from '../view/theme'
import { chooseLanguage, language, languages, t, type Language } from '../i18n/i18n'
import { access, logout } from './state'

const themeWords = { auto: 'themeAuto', light: 'themeLight', dark: 'themeDark' } as const

/** DisplaySettings has the language, the theme, and the logout button. */
export function DisplaySettings() {
  return (
    <div class="admin-display-settings">
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
