import { admin as english } from '../i18n/en/admin'
import { addMessages } from '../i18n/i18n'
import { admin as russian } from '../i18n/ru/admin'

// Only the admin UI needs these texts, so the conversation doesn't load them.
addMessages(english, russian)
