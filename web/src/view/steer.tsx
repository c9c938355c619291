import { t } from '../i18n/i18n'
import { Icon } from './icon'

/**
 * AddToReply is the second send button while the agent works: the text joins the running turn
 * instead of waiting for its own.
 */
export function AddToReply({ add }: { add: () => void }) {
  return (
    <button type="button" class="steer" title={t('addToReplyHint')} onClick={add}><Icon name="add" />{t('addToReply')}</button>
  )
}
