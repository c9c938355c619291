import { t } from '../i18n/i18n'
import { Icon } from './icon'
import { dismissToast, toasts } from './toast'

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map((notice) => (
        <div class="toast" key={notice.id} dir="auto">
          <span>{notice.text}</span>
          {notice.action && <button type="button" class="link" onClick={notice.action.run}>{notice.action.label}</button>}
          <button type="button" class="round" aria-label={t('close')} onClick={() => dismissToast(notice.id)}><Icon name="close" /></button>
        </div>
      ))}
    </div>
  )
}
