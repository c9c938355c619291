import { t } from '../i18n/i18n'
import type { DeviceItem } from './item'

/** deviceNoticeText says what happened to another device of the user. */
export function deviceNoticeText({ news, device }: Pick<DeviceItem, 'news' | 'device'>): string {
  const name = device.name || device.id
  switch (news) {
    case 'device_joined':
      return t('deviceJoined', { name })
    case 'rights_changed':
      return t('deviceRights', { name })
    default:
      return t('deviceAdded', { name })
  }
}
