import { t } from '../words/words'
import { Icon } from './icon'
import { dismiss, notices } from './notice'

export function Notices() {
  return (
    <div class="notices" role="status">
      {notices.value.map((notice) => (
        <div class="notice" key={notice.id} dir="auto">
          <span>{notice.text}</span>
          {notice.action && <button type="button" class="link" onClick={notice.action.run}>{notice.action.label}</button>}
          <button type="button" class="round" aria-label={t('close')} onClick={() => dismiss(notice.id)}><Icon name="close" /></button>
        </div>
      ))}
    </div>
  )
}
