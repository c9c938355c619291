import { connect as english } from '../i18n/en/connect'
import { addMessages } from '../i18n/i18n'
import { connect as russian } from '../i18n/ru/connect'

// Only the setup and its diagnostics need these texts, so the first screen doesn't load them.
addMessages(english, russian)
